"""Finds records by time: the first at or after a timestamp, and the one with the largest timestamp.

The result is exact even inside compressed batches, which therefore have to be decompressed. A batch may have very many
records, so a search goes in steps, like a look (`log/look.py`), and the first one is short: a caller may take it on the
loop and leave the others to a worker. A step passes a bounded number of batches, or of their bytes, and reads only
small batches whole. Only the constructor of a search uses the indexes, which change with every append.

A header may be wrong: it claims a timestamp that no record of its batch has. So the records that one search decodes are
bounded. A batch that would exceed the bound is believed, and its first offset is the answer. No record before it has
the timestamp, so a reader that starts there misses nothing; the first records may be older than requested.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ottla.log.files.disk import File, FileSlice
from ottla.log.files.scan import ScannedBatch, scan
from ottla.log.files.segment import Segment
from ottla.log.look import unpacked_bytes_max
from ottla.log.steps import Steps
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.records.batch import HEADER_BYTES, BatchHeader, read_header
from ottla.records.record import frames, payload


class TimeOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: LeaderEpoch


class _Range(NamedTuple):
    file: File
    begin: int
    end: int


class TimeSearch(Steps):
    """A search for the first record at or above `start_offset` whose timestamp is at or after `timestamp`."""

    def __init__(self, segments: Sequence[Segment], timestamp: int, start_offset: int) -> None:
        super().__init__(self._search())
        self._timestamp = timestamp
        self._start_offset = start_offset
        self._ranges = _ranges(segments, timestamp, start_offset)
        self._left_records = limits.SEARCHED_RECORDS_MAX
        self._left_bytes = limits.SEARCHED_BYTES_MAX
        self.found: TimeOffset | None = None

    def whole(self) -> TimeOffset | None:
        """Take all steps and return the result."""
        self.finish()
        if self.refusal is not None:
            raise self.refusal
        return self.found

    def _search(self) -> Iterator[None]:
        for file, begin, end in self._ranges:
            at: int | None = begin
            while at is not None:
                at = yield from self._pass_over(file, at, end)
                if self.found is not None:
                    return
                if at is not None:
                    self.at_rest = True
                    yield
                    self.at_rest = False

    def _pass_over(self, file: File, begin: int, end: int) -> Generator[None, None, int | None]:
        """Search some batches; return the position of the next ones, None at the end. Nothing that was read is kept."""
        passed_bytes = 0
        for passed, batch in enumerate(scan(file, begin, end, whole=False)):
            if passed == limits.LOOKED_AT_ONCE_RECORDS or passed_bytes >= limits.SCAN_READ_BYTES:
                return batch.position
            passed_bytes += batch.header.size_bytes
            if batch.header.max_timestamp >= self._timestamp:
                yield from self._search_batch(file, batch)
                return batch.position + batch.header.size_bytes
        return None

    def _search_batch(self, file: File, batch: ScannedBatch) -> Iterator[None]:
        header = batch.header
        if header.is_log_append_time:  # all records have this time
            self._believe(header)
            return
        data = None
        if header.count <= self._left_records:
            if header.size_bytes <= limits.LOOKED_AT_ON_LOOP_PACKED_BYTES:
                data = _unpacked(file, batch, min(limits.LOOKED_AT_ON_LOOP_BYTES, self._left_bytes))
            if data is None:
                yield
                data = _unpacked(file, batch, min(unpacked_bytes_max(header.size_bytes), self._left_bytes))
                yield
        if data is None:
            self._believe(header)
            return
        self._left_records -= max(header.count, limits.LOOKED_AT_ONCE_RECORDS)
        self._left_bytes -= len(data)
        for index, frame in enumerate(frames(data, header)):
            if frame.timestamp >= self._timestamp and frame.offset >= self._start_offset:
                self.found = TimeOffset(frame.offset, frame.timestamp, header.leader_epoch)
                return
            if index % limits.LOOKED_AT_ONCE_RECORDS == limits.LOOKED_AT_ONCE_RECORDS - 1:
                yield

    def _believe(self, header: BatchHeader) -> None:
        """Take the first record of the batch that is not below the start as the result."""
        if header.last_offset >= self._start_offset:
            first = max(header.base_offset, self._start_offset)
            self.found = TimeOffset(first, header.max_timestamp, header.leader_epoch)


Read: TypeAlias = Callable[[int], FileSlice | None]


def written_ms(read: Read, offset: int) -> int | None:
    """Return the timestamp of the batch with the first record from `offset` on, NO_TIMESTAMP if it has none; None if
    there is no record.

    `read` returns a slice that begins with the batch that holds an offset. Only headers are read, so the time is that
    of the batch's first record, even if `offset` is that of a later one. Markers and batches that compaction has
    emptied are passed over, a bounded number of them.
    """
    for _ in range(limits.BATCHES_PASSED_OVER_MAX):
        found = read(offset)
        data = b"" if found is None else found.file.read(found.position, HEADER_BYTES)
        if len(data) < HEADER_BYTES:
            return None
        header = read_header(data, 0)
        if header.count and not header.is_control:
            # The base timestamp may be something else: compaction's, or the producer's where the broker's counts.
            other = header.has_delete_horizon or header.is_log_append_time
            return header.max_timestamp if other else header.base_timestamp
        offset = header.next_offset
    return None


def _unpacked(file: File, batch: ScannedBatch, limit_bytes: int) -> bytes | None:
    """Return the decompressed records; None if they are larger than the limit."""
    data = batch.view()
    if len(data) < batch.header.size_bytes:
        data = memoryview(file.read(batch.position, batch.header.size_bytes))
        if len(data) < batch.header.size_bytes:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{file.path} was cut meanwhile")
    try:
        return payload(data, 0, batch.header, limit_bytes)
    except ApiError as error:
        if error.code == ErrorCode.MESSAGE_TOO_LARGE:
            return None
        raise


def _ranges(segments: Sequence[Segment], timestamp: int, start_offset: int) -> list[_Range]:
    """Return the ranges of files to search.

    In the first segment with a timestamp that is large enough, everything up to the last time index entry before the
    timestamp is older; further segments are needed only if nothing is found there.
    """
    found: list[_Range] = []
    for segment in segments:
        if segment.max_timestamp >= timestamp:
            begin = 0
            if not found:
                at = segment.find(max(segment.times.lookup(timestamp - 1)[1], start_offset))
                if at is None:
                    continue
                begin = at[0]
            found.append(_Range(segment.file, begin, segment.size_bytes))
    return found


def largest(segments: Sequence[Segment], start_offset: int) -> TimeSearch:
    """Return a search for the earliest record that has the largest timestamp."""
    best = max((segment.max_timestamp for segment in segments), default=-1)
    return TimeSearch(segments if best >= 0 else (), best, start_offset)
