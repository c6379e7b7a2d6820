"""The committed batches of one replicated log, and reading batches of a node's log without the node's code."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, cast

from ottla.log.files.segment import Segment
from ottla.log.log import Log
from ottla.model.ids import LeaderEpoch
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.sim.world.disk import SimFile


class CommittedBatch(NamedTuple):
    """One batch of a log; `mark` covers its header, and thereby the checksum of its records."""

    base_offset: int
    next_offset: int
    epoch: LeaderEpoch
    mark: int
    size_bytes: int = 0


class CommittedLog:
    """Committed batches by base offset, as seen on the first node that knew them to be committed."""

    def __init__(self) -> None:
        self.batches: dict[int, CommittedBatch] = {}
        self.end_offset = 0
        self.start_offset = 0  # records below were deleted by a leader and are not checked any more

    def compare(self, batch: CommittedBatch) -> str | None:
        """Return what is wrong with a batch that should be committed; None if nothing is."""
        if batch.next_offset <= self.start_offset:
            return None
        known = self.batches.get(batch.base_offset)
        if known == batch:
            return None
        if known is not None:
            return f"{batch} is not what was committed there: {known}"
        if batch.base_offset < self.end_offset and self.batches and batch.next_offset > min(self.batches):
            return f"{batch} does not begin where a committed batch begins"
        return None

    def extend(self, batch: CommittedBatch) -> None:
        if batch.base_offset >= self.end_offset:
            self.batches[batch.base_offset] = batch
            self.end_offset = batch.next_offset


class BatchReader:
    """Reads the batches of one log in order, each once, until the log is truncated below what was read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.offset = log.log_start_offset  # where the next read begins
        self._segment: Segment | None = None
        self._position = 0

    def read(self, end_offset: int) -> Iterator[CommittedBatch]:
        """Yield the batches from where the last read ended, as far as they lie below `end_offset`."""
        log = self._log
        if self.offset < log.log_start_offset:
            self.offset, self._segment = log.log_start_offset, None
        while self.offset < end_offset:
            if self._segment is None or self._segment not in log.segments:
                self._find()
            segment = cast(Segment, self._segment)
            head = cast(SimFile, segment.file).peek(self._position, HEADER_BYTES)
            if len(head) < HEADER_BYTES:
                number = log.segments.index(segment) + 1
                if number == len(log.segments):
                    return
                self._segment, self._position = log.segments[number], 0
                continue
            header = read_header(head)
            if header.next_offset > end_offset:
                return
            self._position += header.size_bytes
            if header.next_offset <= self.offset:
                continue  # a batch before the log start
            self.offset = header.next_offset
            yield CommittedBatch(
                header.base_offset, header.next_offset, header.leader_epoch, zlib.crc32(head), header.size_bytes
            )

    def is_durable(self, batch: CommittedBatch) -> bool:
        """Whether the batch that was read last is synced as it is."""
        file = cast(SimFile, cast(Segment, self._segment).file)
        start = self._position - batch.size_bytes
        return file.peek(start, batch.size_bytes) == file.peek_durable(start, batch.size_bytes)

    def cut(self, offset: int) -> None:
        """Note that the log was truncated at `offset`."""
        self.offset, self._segment = min(self.offset, offset), None

    def _find(self) -> None:
        log = self._log
        number = max(bisect_right([segment.base_offset for segment in log.segments], self.offset) - 1, 0)
        self._segment, self._position = log.segments[number], 0
