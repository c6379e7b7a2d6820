"""One segment: a `.log` file of record batches with its offset, time and transaction index.

Rules:
- Only the last segment of a log is appended to. `seal` ends that: the indexes are written, memory is released.
- The batches appended last are also remembered one by one (`_recent_*`), so that a reader near the end of the log finds
  its position without touching the disk; older positions are found by the sparse index and one small read.
- Timestamps: `max_timestamp` is the largest of any batch header so far, `max_timestamp_offset` the last offset of that
  batch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from struct import Struct

from ottla.log.files.disk import Buffer, Directory, File
from ottla.log.files.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, OffsetIndex, TimeIndex
from ottla.log.files.names import LOG, OFFSET_INDEX, SEGMENT_KINDS, TIME_INDEX, TXN_INDEX, file_name
from ottla.log.files.scan import scan
from ottla.log.files.txn_index import AbortedIndex
from ottla.model.limits import INDEX_READ_BYTES, INT32_MAX, MIB
from ottla.records.batch import HEADER_BYTES, PREFIX_BYTES

# The default of segment.index.bytes.
INDEX_BYTES_MAX = 10 * MIB
_RECENT_MAX = 256
_RECENT_KEPT = 128

# base offset, length, (leader epoch, magic, crc, attributes), last offset delta: all that is needed to find a batch.
_FIND = Struct(">qi11xi")
_find = _FIND.unpack_from


class Segment:
    __slots__ = (
        "_recent_last",
        "_recent_position",
        "_since_index_bytes",
        "aborted",
        "base_offset",
        "created_ms",
        "directory",
        "file",
        "first_timestamp",
        "full",
        "index_bytes",
        "interval_bytes",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "recent_start",
        "suffix",
        "times",
    )

    def __init__(
        self,
        directory: Directory,
        base_offset: int,
        *,
        interval_bytes: int,
        now_ms: int,
        index_bytes: int = INDEX_BYTES_MAX,
        suffix: str = "",
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.suffix = suffix
        self.interval_bytes = interval_bytes
        self.index_bytes = index_bytes
        self.full = False  # an index has no room for another entry
        self.created_ms = now_ms
        self.file: File = directory.open(file_name(base_offset, LOG, suffix), create=True)
        self.offsets = OffsetIndex(directory, file_name(base_offset, OFFSET_INDEX, suffix), base_offset)
        self.times = TimeIndex(directory, file_name(base_offset, TIME_INDEX, suffix), base_offset)
        self.aborted = AbortedIndex(directory, file_name(base_offset, TXN_INDEX, suffix))
        self.first_timestamp = -1
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self._since_index_bytes = 0
        self.recent_start = base_offset
        self._recent_last = array("q")
        self._recent_position = array("q")

    @property
    def size_bytes(self) -> int:
        return self.file.size

    def load(self) -> bool:
        """Take over existing index files; False if one is missing or damaged and must be rebuilt."""
        sound = self.offsets.load() & self.times.load() & self.aborted.load()
        if self.file.size == 0:
            # There is nothing to index; a log that was never written to has no index files either.
            return self.offsets.count == 0 and self.times.count == 0
        if not sound:
            return False
        offset, position = self.offsets.last()
        timestamp, timestamp_offset = self.times.last()
        # Every segment that was closed cleanly has at least one time entry, unless no record has a timestamp.
        if position >= self.file.size or offset < self.base_offset or timestamp_offset < self.base_offset:
            return False
        self.max_timestamp, self.max_timestamp_offset = timestamp, timestamp_offset
        self.recent_start = INT32_MAX + self.base_offset + 1  # no earlier batches are remembered
        head = next(scan(self.file, 0, self.file.size, whole=False, read_bytes=HEADER_BYTES), None)
        self.first_timestamp = head.header.max_timestamp if head else -1
        return True

    # --- appending

    def append(self, data: Buffer, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end and index it. StorageError leaves everything as it was."""
        file = self.file
        position = file.size
        file.append(data)
        self.note(position, size_bytes, last_offset, max_timestamp)

    def note(self, position: int, size_bytes: int, last_offset: int, max_timestamp: int) -> None:
        """Account for a batch that lies in the file: timestamps, indexes, the list of recent batches."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        since = self._since_index_bytes
        if since > self.interval_bytes:
            self.offsets.append(last_offset, position)
            self.times.append(self.max_timestamp, self.max_timestamp_offset)
            since = 0
            self.full = self._indexes_full()
        self._since_index_bytes = since + size_bytes
        recent = self._recent_last
        recent.append(last_offset)
        self._recent_position.append(position)
        count = len(recent)
        if count > _RECENT_MAX:
            self.recent_start = recent[count - _RECENT_KEPT - 1] + 1
            del recent[:-_RECENT_KEPT], self._recent_position[:-_RECENT_KEPT]

    def resume(self, next_offset: int) -> int:
        """Make this segment the active one (again), ending at `next_offset`, which is returned.

        Batches appended from now on are remembered.
        """
        del self._recent_last[:], self._recent_position[:]
        self.recent_start = next_offset
        self._since_index_bytes = self.file.size - self.offsets.last()[1]
        self.full = self._indexes_full()
        return next_offset

    def _indexes_full(self) -> bool:
        """Whether an index is full.

        Kafka keeps one slot of the time index free for the entry written when the segment is rolled.
        """
        return (
            self.offsets.count >= self.index_bytes // OFFSET_ENTRY_BYTES
            or self.times.count >= self.index_bytes // TIME_ENTRY_BYTES - 1
        )

    # --- searching

    def find(self, offset: int) -> tuple[int, int] | None:
        """Return (position, size) of the first batch that ends at or above `offset`; None if there is none here."""
        size = self.file.size
        if offset >= self.recent_start:
            recent = self._recent_last
            at = bisect_left(recent, offset)
            positions = self._recent_position
            if at + 1 < len(recent):
                return positions[at], positions[at + 1] - positions[at]
            return (positions[at], size - positions[at]) if at < len(recent) else None
        position = self.offsets.lookup(offset)
        read = self.file.read
        want = INDEX_READ_BYTES
        while size - position >= HEADER_BYTES:
            data = read(position, want)
            at, end = 0, len(data)
            while at + HEADER_BYTES <= end:
                base, length, delta = _find(data, at)
                if base + delta >= offset:
                    return position + at, length + PREFIX_BYTES
                if length <= 0:
                    return None
                at += length + PREFIX_BYTES
            if at == 0:
                return None
            position += at
            want = HEADER_BYTES if at > INDEX_READ_BYTES else INDEX_READ_BYTES
        return None

    def offset_behind(self, position: int) -> int | None:
        """Return an offset above all batches that begin before a file position; None for the end of the segment."""
        recent = self._recent_position
        if recent and position > recent[0]:
            return self._recent_last[bisect_left(recent, position) - 1] + 1
        return self.offsets.offset_behind(position)

    def next_offset(self) -> int:
        """Return one past the last offset, searched from the last index entry on."""
        return self.end(self.offsets.last()[1])[0]

    def ends_at(self, offset: int) -> bool:
        """Whether the last record lies right before `offset`; after an append this needs no read."""
        recent = self._recent_last
        return (recent[-1] + 1 if recent else self.next_offset()) == offset

    def end(self, start: int) -> tuple[int, int]:
        """Return one past the last offset, and where its batch ends in the file; searched from position `start` on."""
        offset, end = self.base_offset, start
        for batch in scan(self.file, start, self.file.size, whole=False, read_bytes=INDEX_READ_BYTES):
            offset = batch.header.next_offset
            end = batch.position + batch.header.size_bytes
        return offset, end

    # --- changing

    def truncate(self, offset: int) -> int:
        """Remove every batch that holds an offset at or above `offset`; return the number of removed bytes."""
        found = self.find(offset)
        cut = self.file.size - found[0] if found is not None else 0
        if found is not None:
            self.file.truncate(found[0])
        self.offsets.truncate(offset)
        self.times.truncate(offset)
        self.aborted.truncate(offset)
        self.resume(self.next_offset())
        self.max_timestamp, self.max_timestamp_offset = self.times.last()
        # The newest batches may not be in the time index yet: read those behind the last entry of the offset index,
        # which is made at the same time (timestamps that do not grow have no entries).
        for batch in scan(self.file, self.offsets.last()[1], self.file.size, whole=False):
            if batch.header.max_timestamp > self.max_timestamp:
                self.max_timestamp = batch.header.max_timestamp
                self.max_timestamp_offset = batch.header.last_offset
        return cut

    def reset_indexes(self) -> None:
        """Reset everything derived from the file; a scan that calls `note` for each batch rebuilds it."""
        self.offsets.reset()
        self.times.reset()
        self.aborted.reset()
        self.first_timestamp = self.max_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self.resume(self.base_offset)
        self._since_index_bytes = 0

    def write_indexes(self) -> None:
        """Write complete index files, the entry of the largest timestamp included."""
        self.times.append(self.max_timestamp, self.max_timestamp_offset)
        self.offsets.write_out()
        self.times.write_out()

    def indexes_complete(self) -> bool:
        """Whether `write_indexes` would change nothing."""
        if not self.file.size:
            return True
        return self.offsets.complete and self.times.complete and self.times.last()[0] >= self.max_timestamp

    def seal(self) -> None:
        """End the appends: complete the indexes on disk, and release what is only needed for appends."""
        self.write_indexes()
        self.offsets.retire()
        self.times.retire()
        self.aborted.retire()
        self.recent_start = INT32_MAX + self.base_offset + 1
        self._recent_last = array("q")
        self._recent_position = array("q")

    def files(self) -> list[File]:
        """Return every existing file of the segment, for syncing."""
        return [f for f in (self.file, self.offsets.file(), self.times.file(), self.aborted.file()) if f is not None]

    def rename(self, suffix: str) -> None:
        """Change the suffix of all files (`.cleaned` -> `.swap` -> none -> `.deleted`); the log file goes last.

        A crash in between leaves a `.log` under its old name and at worst indexes to rebuild.
        """
        for kind in reversed(SEGMENT_KINDS):
            old = file_name(self.base_offset, kind, self.suffix)
            if kind == LOG or self.directory.exists(old):
                self.directory.rename(old, file_name(self.base_offset, kind, suffix))
        self.offsets.name = file_name(self.base_offset, OFFSET_INDEX, suffix)
        self.times.name = file_name(self.base_offset, TIME_INDEX, suffix)
        self.aborted.name = file_name(self.base_offset, TXN_INDEX, suffix)
        self.suffix = suffix

    def move_indexes(self, suffix: str) -> None:
        """Rename the index files alone; those that do not exist yet will be created under that name."""
        for index, kind in ((self.offsets, OFFSET_INDEX), (self.times, TIME_INDEX), (self.aborted, TXN_INDEX)):
            name = file_name(self.base_offset, kind, suffix)
            if self.directory.exists(index.name):
                self.directory.rename(index.name, name)
            index.name = name

    def remove(self) -> None:
        """Remove all files; the log file first, so that a crash never leaves a log without its offset index."""
        for kind in SEGMENT_KINDS:
            self.directory.remove(file_name(self.base_offset, kind, self.suffix))

    def __repr__(self) -> str:
        return f"Segment({self.directory.path}/{self.base_offset}{self.suffix}, {self.file.size} bytes)"
