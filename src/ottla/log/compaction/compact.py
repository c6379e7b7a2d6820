"""Compaction of one log: rewrite the closed segments so that only the latest record of each key stays.

One round, in the order a caller drives it:

1. `Compaction(...)`, on the loop: notes everything that the loop may change meanwhile (segments and their sizes, how
   many transactions were aborted, the last batches of producers).
2. `build_map()`, in a worker: reads which transactions were aborted, then the dirty range, and fills the offset map,
   until it is full or the range is done.
3. `groups()`: neighbouring segments that fit into one segment together, so that logs do not end as thousands of tiny
   files.
4. For each group `rewrite(group)`, in a worker: writes and syncs a `.cleaned` segment; then `swap(cleaned)`, on the
   loop: renames it to `.swap`, takes the originals out of the log, and removes its suffix. `recovery.leftovers` undoes
   or finishes this after a crash at any point.
5. `end_offset` is the new first dirty offset. If the map was full before the end of the range, the log is still dirty,
   and needs another round.

`build_map` and `rewrite` are generators of the bytes they read and wrote since they last yielded: the caller sleeps for
the throttle there, or closes the generator to give up; a half-written `.cleaned` segment is then removed.

Rules:
- A worker touches only closed segments' log files, entries of the transaction indexes that existed when the round
  began, and the new segment; never another index or a list that the loop uses. Its segments may have left the log
  meanwhile (retention, truncation): `swap` notices that and discards the result.
- Every batch is checked before it is rewritten, so that damage is reported and does not get a valid CRC.
- A log must not be deleted while a worker is in it: close the generator first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from ottla.log.compaction.batch_filter import BatchFilter, CleaningTally, KeptBatch, LastRecord
from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.compaction.swap import replacing
from ottla.log.compaction.transactions import CleanedTxns
from ottla.log.files.disk import Directory
from ottla.log.files.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from ottla.log.files.names import CLEANED, SEGMENT_KINDS, file_name
from ottla.log.files.scan import ScannedBatch, scan
from ottla.log.files.segment import Segment
from ottla.log.files.txn_index import ENTRY_BYTES, AbortedTxn
from ottla.log.log import Log
from ottla.model.errors import ApiError
from ottla.model.limits import INT32_MAX, SCAN_READ_BYTES
from ottla.records.batch import check
from ottla.records.record import frames, payload


class CompactionError(Exception):
    """The log cannot be compacted: a batch is damaged. Kafka marks such a partition as uncleanable."""


class Cleaned(NamedTuple):
    """A new segment, complete and synced, and the segments that it replaces."""

    segment: Segment
    originals: list[Segment]


class Compaction:
    def __init__(
        self,
        log: Log,
        offsets: OffsetMap,
        *,
        first_dirty_offset: int,
        first_uncleanable_offset: int,
        now_ms: int,
        read_bytes: int = SCAN_READ_BYTES,
    ) -> None:
        """`first_uncleanable_offset` is the base of the first segment not to be cleaned (see `schedule.cleanable`)."""
        self._log = log
        self._offsets = offsets
        self._first_dirty = first_dirty_offset
        self._end = first_uncleanable_offset
        self._now_ms = now_ms
        self._read_bytes = read_bytes
        self._config = log.config
        self._segments = [segment for segment in log.segments[:-1] if segment.base_offset < first_uncleanable_offset]
        self._sizes = {segment.base_offset: segment.size_bytes for segment in self._segments}
        self._next_bases = [*(segment.base_offset for segment in self._segments), first_uncleanable_offset][1:]
        self._indexes = [(segment.aborted, segment.aborted.count) for segment in log.segments if segment.aborted.count]
        self._producers = {
            state.producer_id: LastRecord(state.last_offset, state.epoch) for state in log.producer_states()
        }
        self._filter: BatchFilter  # set when the aborted transactions are known
        self.map_bytes_read = 0

    @property
    def tally(self) -> CleaningTally:
        return self._filter.tally

    @property
    def end_offset(self) -> int:
        """The first offset that this round did not clean."""
        return self._offsets.latest_offset + 1

    # --- the offset map

    def build_map(self) -> Generator[int, None, None]:
        """Read the dirty range into the offset map."""
        offsets = self._offsets
        offsets.clear()
        offsets.latest_offset = self._first_dirty - 1
        bases = [segment.base_offset for segment in self._segments]
        start = max((base for base in bases if base <= self._first_dirty), default=0)
        aborted = yield from self._read_aborted()
        self._filter = BatchFilter(
            offsets,
            CleanedTxns(aborted),
            self._producers,
            end_offset=self._end,
            now_ms=self._now_ms,
            delete_retention_ms=self._config.delete_retention_ms,
        )
        # Markers of transactions that ended before `start` are not read below: those producers have begun other
        # transactions.
        txns = CleanedTxns([txn for txn in aborted if txn.last_offset >= start])
        pending_bytes = 0
        for segment, next_base in zip(self._segments, self._next_bases, strict=True):
            if next_base <= self._first_dirty:
                continue
            for batch in self._batches(segment):
                pending_bytes += batch.header.size_bytes
                self.map_bytes_read += batch.header.size_bytes
                with _naming(segment, batch):
                    complete = self._map_batch(batch, txns)
                if not complete:
                    if offsets.latest_offset < self._first_dirty:
                        raise CompactionError(f"{segment!r}: the offset map is too small for one batch")
                    yield pending_bytes
                    return
                if pending_bytes >= self._read_bytes:
                    yield pending_bytes
                    pending_bytes = 0
            # Offsets may be missing at the end of a segment; no record can appear there any more.
            offsets.latest_offset = max(offsets.latest_offset, next_base - 1)
        yield pending_bytes

    def _read_aborted(self) -> Generator[int, None, list[AbortedTxn]]:
        """Return the aborted transactions that began in the range to clean; their markers may lie behind it."""
        aborted: list[AbortedTxn] = []
        at_once = max(self._read_bytes // ENTRY_BYTES, 1)
        for index, count in self._indexes:
            for first in range(0, count, at_once):
                some = index.entries(first, min(first + at_once, count))
                aborted += [txn for txn in some if txn.first_offset < self._end]
                yield len(some) * ENTRY_BYTES
        return aborted

    def _map_batch(self, batch: ScannedBatch, txns: CleanedTxns) -> bool:
        """Put the keys of one batch into the map; False if the map is full before the batch is done."""
        header, offsets = batch.header, self._offsets
        if header.is_control:
            txns.control(batch.data, batch.at, header)
        elif not txns.data(header) and header.count and header.last_offset >= self._first_dirty:
            data = payload(batch.data, batch.at, header)
            for frame in frames(data, header):
                if frame.key_end >= 0 and frame.offset >= self._first_dirty:
                    if offsets.full:
                        return False
                    offsets.put(data[frame.key_start : frame.key_end], frame.offset)
        offsets.latest_offset = max(offsets.latest_offset, header.last_offset)
        return True

    def _batches(self, segment: Segment) -> Iterator[ScannedBatch]:
        """Yield the batches of a closed segment, after checking each."""
        size_bytes = self._sizes[segment.base_offset]
        position = 0
        for batch in scan(segment.file, 0, size_bytes, whole=True, read_bytes=self._read_bytes):
            with _naming(segment, batch):
                check(batch.data, batch.at, batch.header)
            yield batch
            position = batch.position + batch.header.size_bytes
        if position != size_bytes:
            raise CompactionError(f"{segment!r} holds no batch at position {position}")

    # --- the segments

    def groups(self) -> list[list[Segment]]:
        """Return the segments to rewrite, in groups of neighbours whose sum fits into one segment."""
        groups: list[list[Segment]] = []
        log_bytes = offset_bytes = time_bytes = 0
        for segment, next_base in zip(self._segments, self._next_bases, strict=True):
            if segment.base_offset >= self.end_offset:
                break
            size_bytes = self._sizes[segment.base_offset]
            log_bytes += size_bytes
            offset_bytes += segment.offsets.count * OFFSET_ENTRY_BYTES
            time_bytes += segment.times.count * TIME_ENTRY_BYTES
            fits = (
                bool(groups)
                and log_bytes <= self._config.segment_bytes
                and max(offset_bytes, time_bytes) <= self._config.index_bytes
                # Index entries hold 32-bit offsets relative to the base. An empty segment has none.
                and (size_bytes == 0 or next_base - 1 - groups[-1][0].base_offset <= INT32_MAX)
            )
            if fits:
                groups[-1].append(segment)
            else:
                groups.append([segment])
                log_bytes = size_bytes
                offset_bytes = segment.offsets.count * OFFSET_ENTRY_BYTES
                time_bytes = segment.times.count * TIME_ENTRY_BYTES
        return groups

    def rewrite(self, group: list[Segment]) -> Generator[int, None, Cleaned]:
        """Write the kept records of a group into one new segment and sync it."""
        directory, base_offset = self._log.directory, group[0].base_offset
        for kind in SEGMENT_KINDS:
            directory.remove(file_name(base_offset, kind, CLEANED))
        interval = self._config.index_interval_bytes
        new = Segment(directory, base_offset, interval_bytes=interval, now_ms=group[-1].created_ms, suffix=CLEANED)
        try:
            for segment in group:
                yield from self._clean_into(new, segment)
            for txn in self._filter.txns.take_kept():
                new.aborted.append(txn)
            new.seal()
            for file in new.files():
                file.sync()
        except BaseException:
            self._discard(new)
            raise
        return Cleaned(new, group)

    def _clean_into(self, new: Segment, segment: Segment) -> Iterator[int]:
        waiting: list[KeptBatch] = []
        waiting_bytes = cost_bytes = 0
        for batch in self._batches(segment):
            cost_bytes += batch.header.size_bytes
            with _naming(segment, batch):
                kept = self._filter.keep(batch.data, batch.at, batch.header)
            if kept is not None:
                waiting.append(kept)
                waiting_bytes += len(kept.data)
            if max(waiting_bytes, cost_bytes) >= self._read_bytes:
                _write(new, waiting)
                yield cost_bytes + waiting_bytes
                waiting, waiting_bytes, cost_bytes = [], 0, 0
        _write(new, waiting)
        yield cost_bytes + waiting_bytes

    def swapping(self, cleaned: Cleaned, now_ms: int) -> Generator[Directory, None, bool]:
        """Put a rewritten group into the log, unless the log has changed there meanwhile; False then ends the round.

        The yielded directory must be synced before the generator is resumed; a worker thread may do that.
        """
        if not self._is_unchanged(cleaned):
            self._discard(cleaned.segment)
            return False
        new, old = [cleaned.segment], cleaned.originals
        return (yield from replacing(self._log, new, old, now_ms, still=lambda: self._is_unchanged(cleaned)))

    def swap(self, cleaned: Cleaned, now_ms: int) -> bool:
        """Run `swapping` completely in this thread."""
        with closing(self.swapping(cleaned, now_ms)) as steps:
            while True:
                try:
                    next(steps).sync()
                except StopIteration as end:
                    return bool(end.value)

    def _is_unchanged(self, cleaned: Cleaned) -> bool:
        current = {id(segment) for segment in self._log.segments[:-1]}
        return all(
            id(segment) in current and segment.size_bytes == self._sizes[segment.base_offset]
            for segment in cleaned.originals
        )

    def _discard(self, new: Segment) -> None:
        for file in new.files():
            file.close()
        new.remove()


@contextmanager
def _naming(segment: Segment, batch: ScannedBatch) -> Iterator[None]:
    """Name the batch that cannot be read in the error."""
    try:
        yield
    except ApiError as error:
        raise CompactionError(f"{segment!r} at position {batch.position}: {error}") from error


def _write(new: Segment, waiting: list[KeptBatch]) -> None:
    """Append batches in one write and index them."""
    if not waiting:
        return
    position = new.size_bytes
    new.file.append(b"".join([kept.data for kept in waiting]))
    for kept in waiting:
        new.note(position, len(kept.data), kept.last_offset, kept.max_timestamp)
        position += len(kept.data)
