"""The `.snapshot` file (Kafka's ProducerSnapshot, version 1): every producer's state at the offset in its name.

    version i16 | crc u32 | count i32 | (producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset
    delta i32
    | timestamp i64 | coordinator epoch i32 | first offset of the open transaction i64, -1 if none)*

The CRC-32C covers everything behind it. Of the five batches remembered per producer only the last one is stored, as in
Kafka.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from ottla.log.files.disk import Directory, File, StorageError, read_all
from ottla.log.files.names import DELETED, SNAPSHOT, file_name, parse_name
from ottla.model.ids import ProducerEpoch, ProducerId
from ottla.records.crc import crc32c

_VERSION = 1
_HEAD = Struct(">hIi")
_ENTRY = Struct(">qhiqiqiq")
_CRC_END = 6


class SnapshotError(Exception):
    """The file is damaged or of an unknown version; the next older one is used instead."""


class SnapshotEntry(NamedTuple):
    producer_id: ProducerId
    epoch: ProducerEpoch
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


class Newest(NamedTuple):
    sound: tuple[int, list[SnapshotEntry]] | None
    damaged: list[int]  # the offsets of damaged snapshots that were skipped


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    body = [_ENTRY.pack(*entry) for entry in entries]
    out = bytearray(_HEAD.pack(_VERSION, 0, len(body)))
    out += b"".join(body)
    _HEAD.pack_into(out, 0, _VERSION, crc32c(memoryview(out)[_CRC_END:]), len(body))
    return bytes(out)


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    if len(data) < _HEAD.size:
        raise SnapshotError(f"{len(data)} bytes are too few for a producer snapshot")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise SnapshotError(f"unknown version {version} of a producer snapshot")
    if crc32c(memoryview(data)[_CRC_END:]) != crc:
        raise SnapshotError("the CRC of a producer snapshot is wrong")
    if count * _ENTRY.size != len(data) - _HEAD.size:
        raise SnapshotError(f"{count} producers do not fit {len(data)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :])]


class Snapshots:
    """The snapshot files of one partition: one per segment base offset, and one more at the end after a clean stop."""

    __slots__ = ("_directory", "offsets")

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.offsets: list[int] = []

    def discover(self, names: Iterable[str]) -> None:
        parsed = (parse_name(name) for name in names)
        self.offsets = sorted(found[0] for found in parsed if found is not None and found[1:] == (SNAPSHOT, ""))

    def write(self, offset: int, entries: Iterable[SnapshotEntry]) -> None:
        """Write a snapshot; on StorageError no incomplete file is left behind."""
        name = file_name(offset, SNAPSHOT)
        data = encode_snapshot(entries)
        file = self._directory.open(name, create=True)
        try:
            file.truncate(0)
            file.append(data)
        except StorageError:
            self._directory.remove(name)
            raise
        finally:
            file.close()
        if offset not in self.offsets:
            insort(self.offsets, offset)

    def take_newest(self, end_offset: int) -> tuple[int, list[SnapshotEntry]] | None:
        """Return the newest sound snapshot at or below `end_offset`; remove damaged ones."""
        found = self.newest(end_offset)
        self.discard(found.damaged)
        return found.sound

    def newest(self, end_offset: int) -> Newest:
        """Like `take_newest`, but list damaged ones instead of removing them.

        Changes nothing, and may run in a worker thread.
        """
        damaged: list[int] = []
        for offset in self.offsets[::-1]:
            if offset > end_offset:
                continue
            name = file_name(offset, SNAPSHOT)
            try:
                file = self._directory.open(name)
                try:
                    return Newest((offset, decode_snapshot(read_all(file))), damaged)
                finally:
                    file.close()
            except (SnapshotError, FileNotFoundError):
                damaged.append(offset)
        return Newest(None, damaged)

    def discard(self, damaged: Iterable[int]) -> None:
        """Remove the given snapshots that still exist."""
        for offset in damaged:
            if offset in self.offsets:
                self._remove(offset)

    def keep(self, base_offsets: Iterable[int], end_offset: int) -> None:
        """Remove snapshots that belong to no segment, except one at the end of the log."""
        bases = dict.fromkeys(base_offsets)
        for offset in list(self.offsets):
            if offset not in bases and offset != end_offset:
                self._remove(offset)

    def remove_range(self, start: int, end: int) -> None:
        """Remove the snapshots in [start, end)."""
        for offset in self.offsets[bisect_left(self.offsets, start) : bisect_left(self.offsets, end)]:
            self._remove(offset)

    def mark_deleted(self, offset: int) -> None:
        """Rename the snapshot of a segment that left the log; it is removed together with the segment."""
        if offset in self.offsets:
            self.offsets.remove(offset)
            self._directory.rename(file_name(offset, SNAPSHOT), file_name(offset, SNAPSHOT, DELETED))

    def file(self, offset: int) -> File | None:
        return self._directory.open(file_name(offset, SNAPSHOT)) if offset in self.offsets else None

    def _remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        self._directory.remove(file_name(offset, SNAPSHOT))
