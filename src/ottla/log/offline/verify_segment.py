"""Checks one segment: its batches, and the three indexes against them, in one pass through the file.

The indexes are read along with the batches, entry by entry, so that a segment of any size takes only a little memory.
An entry is wrong if a lookup would begin too late and miss records:

- an offset entry must point at the first byte of a batch, and no batch before that may reach the entry's offset;
- a time entry must not be exceeded by any batch before the one that holds its offset.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.log.files.disk import Directory
from ottla.log.files.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from ottla.log.files.names import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, file_name
from ottla.log.files.txn_index import ENTRY_BYTES as TXN_ENTRY_BYTES
from ottla.log.files.txn_index import AbortedTxn
from ottla.log.offline import dump
from ottla.log.offline.findings import Finding, FindingKind, Severity, VerifyTotals
from ottla.model.errors import ApiError
from ottla.records.batch import BatchHeader
from ottla.records.control import read_marker
from ottla.records.record import frames, payload


class SegmentCheck:
    """The check of one segment.

    After `run`: `next_offset` is one past its last offset, `epochs` the first offset of each epoch.
    """

    def __init__(
        self,
        directory: Directory,
        base_offset: int,
        totals: VerifyTotals,
        *,
        floor: int,
        ceiling: int | None,
        mendable: bool,
        deep: bool,
    ) -> None:
        """Offsets must lie in [floor, ceiling).

        `mendable` is for the last segment after an unclean stop: recovery repairs it.
        """
        self._directory = directory
        self._base_offset = base_offset
        self._totals = totals
        self._ceiling = ceiling
        self._deep = deep
        self._soft = Severity.WARNING if mendable else Severity.ERROR
        self._path = f"{directory.path}/{file_name(base_offset, LOG)}"
        self.next_offset = max(floor, base_offset)
        self.max_timestamp = -1
        self.epochs: list[tuple[int, int]] = []
        self._aborts: list[tuple[int, int]] = []  # (offset, producer id) of abort markers

    def run(self) -> Iterator[Finding]:
        self._totals.segments += 1
        offsets, times = _OffsetWalk(self._directory, self._base_offset), _TimeWalk(self._directory, self._base_offset)
        end = 0
        for found in dump.batches(self._directory, self._base_offset):
            if isinstance(found, dump.Garbage):
                message = f"{found.size_bytes} bytes are no batch"
                yield Finding(self._soft, FindingKind.GARBAGE, self._path, found.position, message)
                break
            yield from self._batch(found)
            yield from offsets.batch(found.position, found.header)
            yield from times.batch(found.position, found.header)
            self.next_offset = max(self.next_offset, found.header.next_offset)
            self.max_timestamp = max(self.max_timestamp, found.header.max_timestamp)
            end = found.position + found.header.size_bytes
        self._totals.size_bytes += end
        yield from offsets.finish(self._soft)
        yield from times.finish(self._soft, self.max_timestamp)
        yield from self._txn_index()

    def _batch(self, batch: dump.DumpedBatch) -> Iterator[Finding]:
        header = batch.header
        self._totals.batches += 1
        if batch.problem is not None:
            yield Finding(Severity.ERROR, FindingKind.DAMAGED_BATCH, self._path, batch.position, batch.problem)
            return
        beyond = self._ceiling is not None and header.last_offset >= self._ceiling
        if header.base_offset < self.next_offset or header.last_offset_delta < 0 or beyond:
            limit = "" if self._ceiling is None else f", the next segment begins at {self._ceiling}"
            message = f"offsets {header.base_offset}-{header.last_offset} come after {self.next_offset - 1}{limit}"
            yield Finding(Severity.ERROR, FindingKind.OFFSET_ORDER, self._path, batch.position, message)
        epoch = header.leader_epoch
        if epoch >= 0 and (not self.epochs or self.epochs[-1][0] != epoch):
            if self.epochs and epoch < self.epochs[-1][0]:
                message = f"leader epoch {epoch} comes after {self.epochs[-1][0]}"
                yield Finding(Severity.ERROR, FindingKind.EPOCH_ORDER, self._path, batch.position, message)
            self.epochs.append((epoch, header.base_offset))
        if self._deep:
            yield from self._records(batch)

    def _records(self, batch: dump.DumpedBatch) -> Iterator[Finding]:
        header = batch.header
        last, newest, count = header.base_offset - 1, -1, 0
        try:
            if header.count:
                for frame in frames(payload(batch.data, 0, header), header):
                    if not last < frame.offset <= header.last_offset:
                        raise ValueError(f"record offset {frame.offset} comes after {last}, up to {header.last_offset}")
                    last, newest, count = frame.offset, max(newest, frame.timestamp), count + 1
            if header.is_control and header.has_producer_id:
                marker = read_marker(batch.data)
                if marker is not None and not marker.commit:
                    self._aborts.append((header.base_offset, header.producer_id))
        except (ApiError, ValueError) as error:
            text = error.text if isinstance(error, ApiError) else str(error)
            yield Finding(Severity.ERROR, FindingKind.DAMAGED_RECORD, self._path, batch.position, text)
        self._totals.records += count
        if newest > header.max_timestamp:
            message = f"a record's timestamp {newest} is above the batch's largest, {header.max_timestamp}"
            yield Finding(Severity.WARNING, FindingKind.TIMESTAMP, self._path, batch.position, message)

    def _txn_index(self) -> Iterator[Finding]:
        name = file_name(self._base_offset, TXN_INDEX)
        path = f"{self._directory.path}/{name}"
        if not self._directory.exists(name):
            return
        with dump.opened(self._directory, name) as file:
            if file.size % TXN_ENTRY_BYTES:
                message = f"{file.size} bytes are no whole number of entries"
                yield Finding(self._soft, FindingKind.INDEX_SIZE, path, None, message)
        last = -1
        for number, txn in enumerate(dump.txn_index(self._directory, self._base_offset)):
            problem = self._txn_problem(txn, last)
            last = txn.last_offset
            if problem is not None:
                yield Finding(self._soft, FindingKind.TXN_INDEX, path, number * TXN_ENTRY_BYTES, problem)

    def _txn_problem(self, txn: AbortedTxn, last: int) -> str | None:
        name = f"producer {txn.producer_id}, offsets {txn.first_offset}-{txn.last_offset}"
        if txn.first_offset > txn.last_offset or txn.last_offset <= last:
            return f"{name}: out of order"
        if not self._base_offset <= txn.last_offset < self.next_offset:
            return f"{name}: the marker does not lie in this segment"
        if self._deep and (txn.last_offset, txn.producer_id) not in self._aborts:
            return f"{name}: there is no abort marker at its end"
        return None


class _OffsetWalk:
    """Checks the offset index, entry by entry, as the batches are read."""

    def __init__(self, directory: Directory, base_offset: int) -> None:
        name = file_name(base_offset, OFFSET_INDEX)
        self._path = f"{directory.path}/{name}"
        self._size_bytes = _size(directory, name)
        self._entries = dump.offset_index(directory, base_offset) if self._size_bytes is not None else iter(())
        self._number = -1
        self._last = dump.OffsetEntry(-1, -1)
        self._entry = next(self._entries, None)
        self._before = base_offset - 1  # the last offset of the batch before
        self._batches = 0

    def batch(self, position: int, header: BatchHeader) -> Iterator[Finding]:
        while self._entry is not None and self._entry.position <= position:
            entry = self._entry
            if entry.offset <= self._last.offset or entry.position <= self._last.position:
                yield self._finding(Severity.ERROR, FindingKind.INDEX_ORDER, f"{entry} comes after {self._last}")
            elif entry.position < position:
                yield self._finding(Severity.ERROR, FindingKind.INDEX_POSITION, f"{entry}: no batch begins there")
            elif entry.offset <= self._before:
                message = f"{entry}: an earlier batch reaches up to {self._before}"
                yield self._finding(Severity.ERROR, FindingKind.INDEX_OFFSET, message)
            elif entry.offset != header.last_offset:
                message = f"{entry}: the batch there ends with {header.last_offset}"
                yield self._finding(Severity.WARNING, FindingKind.INDEX_OFFSET, message)
            self._last = entry
            self._advance()
        self._before = header.last_offset
        self._batches += 1

    def finish(self, soft: Severity) -> Iterator[Finding]:
        yield from _shape(self._path, self._size_bytes, OFFSET_ENTRY_BYTES, soft, needed=self._batches > 0)
        if self._entry is not None:
            yield self._finding(soft, FindingKind.INDEX_POSITION, f"{self._entry} points behind the last batch")

    def _advance(self) -> None:
        self._entry = next(self._entries, None)
        self._number += 1

    def _finding(self, severity: Severity, kind: FindingKind, message: str) -> Finding:
        return Finding(severity, kind, self._path, (self._number + 1) * OFFSET_ENTRY_BYTES, message)


class _TimeWalk:
    """Checks the time index, entry by entry, as the batches are read."""

    def __init__(self, directory: Directory, base_offset: int) -> None:
        name = file_name(base_offset, TIME_INDEX)
        self._path = f"{directory.path}/{name}"
        self._size_bytes = _size(directory, name)
        self._entries = dump.time_index(directory, base_offset) if self._size_bytes is not None else iter(())
        self._number = 0
        self._last: dump.TimeEntry | None = None
        self._entry = next(self._entries, None)
        self._newest = -1  # the largest timestamp of all batches before
        self._batches = 0

    def batch(self, position: int, header: BatchHeader) -> Iterator[Finding]:
        while self._entry is not None and self._entry.offset <= header.last_offset:
            entry, last = self._entry, self._last
            if last is not None and (entry.timestamp <= last.timestamp or entry.offset < last.offset):
                yield self._finding(Severity.ERROR, FindingKind.INDEX_ORDER, f"{entry} comes after {last}")
            elif self._newest > entry.timestamp:
                message = f"{entry}: an earlier batch reaches up to timestamp {self._newest}"
                yield self._finding(Severity.ERROR, FindingKind.TIME_INDEX, message)
            elif entry.timestamp > max(header.max_timestamp, self._newest):
                message = f"{entry}: no batch up to there is so young, the one at {position} is {header.max_timestamp}"
                yield self._finding(Severity.WARNING, FindingKind.TIME_INDEX, message)
            self._last = entry
            self._entry = next(self._entries, None)
            self._number += 1
        self._newest = max(self._newest, header.max_timestamp)
        self._batches += 1

    def finish(self, soft: Severity, max_timestamp: int) -> Iterator[Finding]:
        yield from _shape(self._path, self._size_bytes, TIME_ENTRY_BYTES, soft, needed=self._batches > 0)
        if self._entry is not None:
            yield self._finding(soft, FindingKind.TIME_INDEX, f"{self._entry} points behind the last batch")
        elif self._last is not None and self._last.timestamp < max_timestamp and soft is Severity.ERROR:
            message = f"the last entry is {self._last}, the youngest batch {max_timestamp}"
            yield self._finding(Severity.WARNING, FindingKind.TIME_INDEX, message)

    def _finding(self, severity: Severity, kind: FindingKind, message: str) -> Finding:
        return Finding(severity, kind, self._path, self._number * TIME_ENTRY_BYTES, message)


def _size(directory: Directory, name: str) -> int | None:
    try:
        with dump.opened(directory, name) as file:
            return file.size
    except FileNotFoundError:
        return None


def _shape(path: str, size_bytes: int | None, entry_bytes: int, soft: Severity, *, needed: bool) -> Iterator[Finding]:
    if size_bytes is None:
        if needed:
            yield Finding(Severity.WARNING, FindingKind.MISSING, path, None, "missing; opening the log rebuilds it")
    elif size_bytes % entry_bytes:
        yield Finding(soft, FindingKind.INDEX_SIZE, path, None, f"{size_bytes} bytes are no whole number of entries")
