"""Reads any data directory offline, ours or a real Kafka's: the content of its files, batch by batch, entry by entry.

Rules:
- Nothing is written, created or repaired; files are only opened to be read, and closed.
- Damage does not end a dump. A batch that is damaged inside is shown with its `problem`; where no batch can begin, the
  rest of the file is one `Garbage`.
- Everything is a generator: a segment of a gigabyte is read in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import NamedTuple

from ottla.log.files.checkpoint import LEADER_EPOCHS, CheckpointError, read_lines
from ottla.log.files.disk import Directory, Disk, File, StorageError, read_all
from ottla.log.files.names import (
    LOG,
    OFFSET_INDEX,
    SEAM,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    parse_name,
)
from ottla.log.files.scan import scan
from ottla.log.files.txn_index import ENTRY_BYTES as TXN_ENTRY_BYTES
from ottla.log.files.txn_index import AbortedTxn
from ottla.log.producers.snapshot import SnapshotEntry, decode_snapshot
from ottla.log.recovery.ownership import is_home
from ottla.model.errors import ApiError
from ottla.records.batch import BatchHeader, check
from ottla.records.record import Record, records

_OFFSET_ENTRY = Struct(">II")
_TIME_ENTRY = Struct(">qI")
_TXN_ENTRY = Struct(">hqqqq")
_READ_ENTRIES = 16384


class DumpedBatch(NamedTuple):
    """One batch of a segment file."""

    position: int
    header: BatchHeader
    data: memoryview
    problem: str | None  # what is wrong with its CRC or structure, or None

    def records(self) -> Iterator[Record]:
        """Decode the records. Raises `ApiError` if one is malformed."""
        return records(self.data)


class Garbage(NamedTuple):
    """The rest of a file in which no batch begins, or only a part of one."""

    position: int
    size_bytes: int


class OffsetEntry(NamedTuple):
    offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    offset: int


class PartitionFiles(NamedTuple):
    """The files of one partition directory, sorted: base offsets by kind, and all other names."""

    segments: list[int]
    offset_indexes: list[int]
    time_indexes: list[int]
    txn_indexes: list[int]
    snapshots: list[int]
    seams: list[int]
    leftovers: list[str]  # files in transition: .deleted, .cleaned, .swap
    others: list[str]


def partition_directories(disk: Disk) -> list[str]:
    """Return the directories that hold a log: partitions, and those that are being deleted or moved."""
    return [name for name in disk.list("") if is_home(disk, name)]


def partition_files(directory: Directory) -> PartitionFiles:
    found = PartitionFiles([], [], [], [], [], [], [], [])
    by_kind = {
        LOG: found.segments,
        OFFSET_INDEX: found.offset_indexes,
        TIME_INDEX: found.time_indexes,
        TXN_INDEX: found.txn_indexes,
        SNAPSHOT: found.snapshots,
        SEAM: found.seams,
    }
    for name in directory.list():
        parsed = parse_name(name)
        if parsed is None:
            found.others.append(name)
        elif parsed[2]:
            found.leftovers.append(name)
        else:
            by_kind[parsed[1]].append(parsed[0])
    return found


def batches(directory: Directory, base_offset: int) -> Iterator[DumpedBatch | Garbage]:
    """Yield every batch of a segment, and the bytes behind the last one if they are no batch."""
    with opened(directory, file_name(base_offset, LOG)) as file:
        yield from batches_of(file)


def batches_of(file: File) -> Iterator[DumpedBatch | Garbage]:
    """Yield the batches of any file of batches, for instance of a metadata snapshot (`*.checkpoint`)."""
    position, size_bytes = 0, file.size
    try:
        for found in scan(file, 0, size_bytes, whole=True):
            position = found.position + found.header.size_bytes
            data = found.view()
            yield DumpedBatch(found.position, found.header, data, _problem(data, found.header))
    except StorageError:
        # Records of the old formats v0 and v1: Kafka 4 cannot read them either.
        pass
    if position < size_bytes:
        yield Garbage(position, size_bytes - position)


def _problem(data: memoryview, header: BatchHeader) -> str | None:
    try:
        check(data, 0, header)
    except ApiError as error:
        return error.text
    return None


def offset_index(directory: Directory, base_offset: int) -> Iterator[OffsetEntry]:
    """Yield the entries of an offset index; zeros at its end are the padding of a killed Kafka."""
    for relative, position in _entries(directory, file_name(base_offset, OFFSET_INDEX), _OFFSET_ENTRY):
        yield OffsetEntry(base_offset + relative, position)


def time_index(directory: Directory, base_offset: int) -> Iterator[TimeEntry]:
    """Yield the entries of a time index; zeros at its end are the padding of a killed Kafka."""
    for timestamp, relative in _entries(directory, file_name(base_offset, TIME_INDEX), _TIME_ENTRY):
        yield TimeEntry(timestamp, base_offset + relative)


def _entries(directory: Directory, name: str, entry: Struct) -> Iterator[tuple[int, ...]]:
    with opened(directory, name) as file:
        count = file.size // entry.size
        zeros = 0
        for first in range(0, count, _READ_ENTRIES):
            data = file.read(first * entry.size, min(_READ_ENTRIES, count - first) * entry.size)
            if data.count(0) == len(data):  # a killed Kafka leaves megabytes of zeros
                zeros += len(data) // entry.size
                continue
            for fields in entry.iter_unpack(data[: len(data) - len(data) % entry.size]):
                if not any(fields):
                    zeros += 1
                    continue
                # Zeros that are followed by other entries are no padding, but entries themselves.
                for _ in range(zeros):
                    yield (0, 0)
                zeros = 0
                yield fields


def txn_index(directory: Directory, base_offset: int) -> list[AbortedTxn]:
    """Return the aborted transactions of a segment; empty if it has no such index."""
    try:
        with opened(directory, file_name(base_offset, TXN_INDEX)) as file:
            data = read_all(file)
    except FileNotFoundError:
        return []
    whole = len(data) - len(data) % TXN_ENTRY_BYTES
    return [AbortedTxn(*fields[1:]) for fields in _TXN_ENTRY.iter_unpack(data[:whole])]


def snapshot(directory: Directory, offset: int) -> list[SnapshotEntry]:
    """Return the producers' state at `offset`. Raises `SnapshotError` if the file is damaged."""
    with opened(directory, file_name(offset, SNAPSHOT)) as file:
        return decode_snapshot(read_all(file))


def leader_epochs(directory: Directory) -> list[tuple[int, int]]:
    """Return (epoch, first offset) pairs of `leader-epoch-checkpoint`. Raises `CheckpointError` if it is damaged."""
    try:
        return [(int(epoch), int(start)) for epoch, start in read_lines(directory, LEADER_EPOCHS)]
    except ValueError:
        raise CheckpointError(f"{directory.path}/{LEADER_EPOCHS}: a line is not two numbers") from None


@contextmanager
def opened(directory: Directory, name: str) -> Iterator[File]:
    file = directory.open(name)
    try:
        yield file
    finally:
        file.close()
