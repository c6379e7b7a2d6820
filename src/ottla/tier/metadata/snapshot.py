"""A RemoteLog as bytes: a broker that starts again reads the metadata topic from there on, not from its beginning.

    version 2 | CRC-32C of the rest 4 | next offset of the metadata topic's partition 8
    topic id 16 | partition 4 | state of the partition's deletion 1 (-1: none) | topic, as a varint's length and UTF-8
    number of segments | for each: length, and Kafka's RemoteLogSegmentMetadataSnapshotRecord
    number of epochs | for each: epoch 4, highest offset 8 (the least of all numbers: none), number of segments that are
                       read, and their positions in the list above, by ascending offsets

Numbers without a size are unsigned varints. Which segments are read is told and not found out again: that depends on
the order of records and on segments that are deleted since. All other segments of an epoch are its unread ones.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.model.ids import LeaderEpoch
from ottla.model.limits import INT64_MAX
from ottla.records.crc import crc32c
from ottla.tier.metadata.epoch_segments import EpochSegments
from ottla.tier.metadata.records import decode_snapshot, encode_snapshot
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import RemoteSegmentMetadata, TopicIdPartition
from ottla.tier.metadata.states import PartitionDeleteState, RemoteMetadataError
from ottla.wire.varint import read_uvarint, uvarint_bytes

_VERSION = 1
_NOT_DELETED = -1
_NO_OFFSET = -INT64_MAX - 1
_HEAD = Struct(">HI")
_LOG = Struct(">q16sib")
_EPOCH = Struct(">iq")


class RemoteLogSnapshot(NamedTuple):
    """A RemoteLog, and the next offset to read in its partition of the metadata topic."""

    remote: RemoteLog
    next_offset: int


def encode_log(snapshot: RemoteLogSnapshot) -> bytes:
    """Return the bytes of a snapshot."""
    remote = snapshot.remote
    deletion = _NOT_DELETED if remote.deletion is None else int(remote.deletion)
    topic, topic_id, partition = remote.partition
    out = bytearray(_HEAD.size)
    out += _LOG.pack(snapshot.next_offset, topic_id, partition, deletion)
    _add_sized(out, topic.encode())
    out += uvarint_bytes(len(remote))
    positions: dict[bytes, int] = {}
    for position, segment in enumerate(remote.segments()):
        positions[segment.uuid] = position
        _add_sized(out, encode_snapshot(segment))
    out += uvarint_bytes(len(remote.epochs))
    for epoch, known in remote.epochs.items():
        out += _EPOCH.pack(epoch, _NO_OFFSET if known.highest_offset is None else known.highest_offset)
        out += uvarint_bytes(len(known.referenced))
        for uuid in known.referenced:
            out += uvarint_bytes(positions[uuid])
    _HEAD.pack_into(out, 0, _VERSION, crc32c(memoryview(out)[_HEAD.size :]))
    return bytes(out)


def decode_log(data: bytes) -> RemoteLogSnapshot:
    """Read a snapshot; RemoteMetadataError if it is damaged or of another version."""
    if len(data) < _HEAD.size:
        raise RemoteMetadataError(f"a snapshot of remote metadata has only {len(data)} bytes")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise RemoteMetadataError(f"a snapshot of remote metadata has the version {version}, not {_VERSION}")
    if crc32c(memoryview(data)[_HEAD.size :]) != crc:
        raise RemoteMetadataError("a snapshot of remote metadata is damaged: its checksum is wrong")
    try:
        return _log(data, _HEAD.size)
    except (IndexError, KeyError, ValueError, StructError) as problem:
        raise RemoteMetadataError(f"a snapshot of remote metadata cannot be read: {problem}") from None


def _log(data: bytes, at: int) -> RemoteLogSnapshot:
    next_offset, topic_id, partition, deletion = _LOG.unpack_from(data, at)
    topic, at = _sized(data, at + _LOG.size)
    owner = TopicIdPartition(topic.decode(), topic_id, partition)
    count, at = read_uvarint(data, at)
    segments: list[RemoteSegmentMetadata] = []
    for _ in range(count):
        value, at = _sized(data, at)
        segments.append(decode_snapshot(value, owner))
    epochs, at = _epochs(data, at, segments)
    if at != len(data):
        raise RemoteMetadataError(f"{len(data) - at} bytes too many")
    state = None if deletion == _NOT_DELETED else PartitionDeleteState(deletion)
    return RemoteLogSnapshot(RemoteLog.restored(owner, state, segments, epochs), next_offset)


def _epochs(
    data: bytes, at: int, segments: list[RemoteSegmentMetadata]
) -> tuple[dict[LeaderEpoch, EpochSegments], int]:
    ranges: dict[int, dict[bytes, tuple[int, int]]] = {}
    for segment in segments:
        for epoch, start, end in segment.epoch_ranges():
            ranges.setdefault(epoch, {})[segment.uuid] = (start, end)
    epochs = {}
    count, at = read_uvarint(data, at)
    for _ in range(count):
        number, highest = _EPOCH.unpack_from(data, at)
        read_count, at = read_uvarint(data, at + _EPOCH.size)
        unread = ranges.get(number, {})
        referenced = []
        for _ in range(read_count):
            position, at = read_uvarint(data, at)
            uuid = segments[position].uuid
            referenced.append((*unread.pop(uuid), uuid))
        known = EpochSegments.restored(None if highest == _NO_OFFSET else highest, referenced, unread)
        epochs[LeaderEpoch(number)] = known
    return epochs, at


def _add_sized(out: bytearray, data: bytes) -> None:
    out += uvarint_bytes(len(data))
    out += data


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    size_bytes, at = read_uvarint(data, at)
    return data[at : at + size_bytes], at + size_bytes
