"""The values of `__remote_log_metadata`, byte for byte as Kafka's RemoteLogMetadataSerde writes them.

A value is a frame version (1), the record's type and the record's version as unsigned varints, then the record. Keys
are null. The record of a snapshot does not name its partition: whoever reads it knows that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ottla.tier.metadata.segment import (
    EpochStarts,
    PartitionDeletion,
    RemoteLogEvent,
    RemoteSegmentMetadata,
    SegmentUpdate,
    TopicIdPartition,
)
from ottla.tier.metadata.states import PartitionDeleteState, RemoteMetadataError, SegmentState
from ottla.wire import compile
from ottla.wire.journal.remote_log import (
    RemoteLogSegmentMetadataRecord,
    RemoteLogSegmentMetadataSnapshotRecord,
    RemoteLogSegmentMetadataUpdateRecord,
    RemotePartitionDeleteMetadataRecord,
)
from ottla.wire.message import Data
from ottla.wire.varint import read_uvarint

_FRAME_VERSION = 1
_VERSION = 0
_TYPES: dict[int, type[Data]] = {
    record.key: record
    for record in (
        RemoteLogSegmentMetadataRecord,
        RemoteLogSegmentMetadataUpdateRecord,
        RemotePartitionDeleteMetadataRecord,
        RemoteLogSegmentMetadataSnapshotRecord,
    )
}

_AddedId = RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry
_UpdatedId = RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry
_PartitionEntry: TypeAlias = (
    _AddedId.TopicIdPartitionEntry
    | _UpdatedId.TopicIdPartitionEntry
    | RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry
)
_EpochEntry: TypeAlias = (
    RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry
    | RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry
)


def encode(event: RemoteLogEvent) -> bytes:
    """Return the value of one record of the metadata topic."""
    if isinstance(event, RemoteSegmentMetadata):
        return _value(_added(event))
    if isinstance(event, SegmentUpdate):
        return _value(_updated(event))
    topic, topic_id, partition = event.partition
    return _value(
        RemotePartitionDeleteMetadataRecord(
            topic_id_partition=RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry(
                name=topic, id=topic_id, partition=partition
            ),
            broker_id=event.broker_id,
            event_timestamp_ms=event.event_timestamp_ms,
            remote_partition_delete_state=event.state,
        )
    )


def decode(value: bytes | memoryview) -> RemoteLogEvent:
    """Read one record of the metadata topic; RemoteMetadataError if it is none."""
    record = _record(value)
    if isinstance(record, RemoteLogSegmentMetadataRecord):
        id = record.remote_log_segment_id
        return _segment(record, _partition(id.topic_id_partition), id.id)
    if isinstance(record, RemoteLogSegmentMetadataUpdateRecord):
        return SegmentUpdate(
            partition=_partition(record.remote_log_segment_id.topic_id_partition),
            uuid=record.remote_log_segment_id.id,
            broker_id=record.broker_id,
            event_timestamp_ms=record.event_timestamp_ms,
            state=_segment_state(record.remote_log_segment_state),
            custom_metadata=record.custom_metadata,
        )
    if isinstance(record, RemotePartitionDeleteMetadataRecord):
        return PartitionDeletion(
            partition=_partition(record.topic_id_partition),
            broker_id=record.broker_id,
            event_timestamp_ms=record.event_timestamp_ms,
            state=_delete_state(record.remote_partition_delete_state),
        )
    raise RemoteMetadataError(f"a {type(record).__name__} is not a record of the metadata topic")


def encode_snapshot(segment: RemoteSegmentMetadata) -> bytes:
    """Return a segment as Kafka's record of a snapshot."""
    entry = RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry
    return _value(
        RemoteLogSegmentMetadataSnapshotRecord(
            segment_id=segment.uuid,
            start_offset=segment.start_offset,
            end_offset=segment.end_offset,
            broker_id=segment.broker_id,
            max_timestamp_ms=segment.max_timestamp_ms,
            event_timestamp_ms=segment.event_timestamp_ms,
            segment_leader_epochs=[entry(leader_epoch=epoch, offset=start) for epoch, start in segment.leader_epochs],
            segment_size_in_bytes=segment.size_bytes,
            custom_metadata=segment.custom_metadata,
            remote_log_segment_state=segment.state,
            txn_index_empty=segment.txn_index_empty,
        )
    )


def decode_snapshot(value: bytes | memoryview, partition: TopicIdPartition) -> RemoteSegmentMetadata:
    """Read a segment of `partition` from a record of a snapshot; RemoteMetadataError if it is none."""
    record = _record(value)
    if not isinstance(record, RemoteLogSegmentMetadataSnapshotRecord):
        raise RemoteMetadataError(f"a {type(record).__name__} is not a record of a snapshot")
    return _segment(record, partition, record.segment_id)


def _added(segment: RemoteSegmentMetadata) -> RemoteLogSegmentMetadataRecord:
    topic, topic_id, partition = segment.partition
    entry = RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry
    return RemoteLogSegmentMetadataRecord(
        remote_log_segment_id=_AddedId(
            topic_id_partition=_AddedId.TopicIdPartitionEntry(name=topic, id=topic_id, partition=partition),
            id=segment.uuid,
        ),
        start_offset=segment.start_offset,
        end_offset=segment.end_offset,
        broker_id=segment.broker_id,
        max_timestamp_ms=segment.max_timestamp_ms,
        event_timestamp_ms=segment.event_timestamp_ms,
        segment_leader_epochs=[entry(leader_epoch=epoch, offset=start) for epoch, start in segment.leader_epochs],
        segment_size_in_bytes=segment.size_bytes,
        custom_metadata=segment.custom_metadata,
        remote_log_segment_state=segment.state,
        txn_index_empty=segment.txn_index_empty,
    )


def _updated(update: SegmentUpdate) -> RemoteLogSegmentMetadataUpdateRecord:
    topic, topic_id, partition = update.partition
    return RemoteLogSegmentMetadataUpdateRecord(
        remote_log_segment_id=_UpdatedId(
            topic_id_partition=_UpdatedId.TopicIdPartitionEntry(name=topic, id=topic_id, partition=partition),
            id=update.uuid,
        ),
        broker_id=update.broker_id,
        event_timestamp_ms=update.event_timestamp_ms,
        custom_metadata=update.custom_metadata,
        remote_log_segment_state=update.state,
    )


def _value(record: Data) -> bytes:
    out = bytearray((_FRAME_VERSION, type(record).key, _VERSION))
    compile.encoder(type(record), _VERSION)(record, out, [])
    return bytes(out)


def _record(value: bytes | memoryview) -> Data:
    try:
        frame, at = read_uvarint(value, 0)
        key, at = read_uvarint(value, at)
        version, at = read_uvarint(value, at)
        if frame != _FRAME_VERSION or key not in _TYPES:
            raise RemoteMetadataError(f"a record of frame version {frame} and type {key} is unknown")
        return compile.decode(_TYPES[key], version, memoryview(value)[at:])
    except IndexError:
        raise RemoteMetadataError(f"a record of remote metadata ends after {len(value)} bytes") from None
    except compile.WireError as error:
        raise RemoteMetadataError(f"a record of remote metadata cannot be read: {error}") from None


def _segment(
    record: RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataSnapshotRecord,
    partition: TopicIdPartition,
    uuid: bytes,
) -> RemoteSegmentMetadata:
    return RemoteSegmentMetadata(
        partition=partition,
        uuid=uuid,
        start_offset=record.start_offset,
        end_offset=record.end_offset,
        max_timestamp_ms=record.max_timestamp_ms,
        broker_id=record.broker_id,
        event_timestamp_ms=record.event_timestamp_ms,
        size_bytes=record.segment_size_in_bytes,
        leader_epochs=_epochs(record.segment_leader_epochs, record.start_offset),
        state=_segment_state(record.remote_log_segment_state),
        custom_metadata=record.custom_metadata,
        txn_index_empty=record.txn_index_empty,
    )


def _epochs(entries: Sequence[_EpochEntry], start_offset: int) -> EpochStarts:
    """Return the epochs in ascending order. The first one shares the segment's integer: there are many segments."""
    starts = [start_offset if entry.offset == start_offset else entry.offset for entry in entries]
    return tuple(sorted((entry.leader_epoch, start) for entry, start in zip(entries, starts, strict=True)))


def _partition(entry: _PartitionEntry) -> TopicIdPartition:
    return TopicIdPartition(entry.name, entry.id, entry.partition)


def _segment_state(number: int) -> SegmentState:
    try:
        return SegmentState(number)
    except ValueError:
        raise RemoteMetadataError(f"a record tells the unknown state {number} of a remote segment") from None


def _delete_state(number: int) -> PartitionDeleteState:
    try:
        return PartitionDeleteState(number)
    except ValueError:
        raise RemoteMetadataError(f"a record tells the unknown state {number} of a partition's deletion") from None
