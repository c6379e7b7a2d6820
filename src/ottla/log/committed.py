"""Reads for READ_COMMITTED: a range of the log, and every aborted transaction with records in it.

Rules:
- The list is complete, whatever it costs: a reader takes records of unlisted transactions as committed. If the list
  would be longer than `aborted_max`, the range is shortened. Only a first batch that must be returned may have a longer
  list.
- A transaction overlaps [start, end) if it begins below `end` and its marker lies at or above `start`. Transactions
  with a marker below `end` lie next to each other in the index. The others, still open at `end`, may have been aborted
  anywhere behind it; the search ends at an entry whose last stable offset is at or above `end`, because no transaction
  that ended later began before that offset.
- Blocks of the index without such a transaction are skipped, once their summaries are known. A read learns a bounded
  number of summaries and returns nothing if that was not enough; the next read goes on from there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ottla.log.files.disk import FileSlice
from ottla.log.files.scan import scan
from ottla.log.files.txn_index import BLOCK_ENTRIES, AbortedIndex, AbortedTxn
from ottla.log.state import LogSlice, LogState
from ottla.model.limits import ABORTED_BLOCKS_SUMMARIZED_MAX, INT64_MAX
from ottla.records.batch import HEADER_BYTES

_FIRST_STEP_ENTRIES = 16


class _Unfinished(Exception):
    """The read would have to learn more blocks than it may."""


def read(
    log: LogState, offset: int, max_bytes: int, *, max_offset: int, at_least_one: bool, aborted_max: int
) -> tuple[LogSlice, list[AbortedTxn]]:
    """Like `Log.read`, with the aborted transactions whose records the reader has to skip."""
    fetched = log.read(offset, max_bytes, max_offset=max_offset, at_least_one=at_least_one)
    if fetched.slice is None:
        return fetched, []
    indexes = _indexes(log, offset)
    if not indexes:
        return fetched, []
    segment = log.last_read
    behind = segment.offset_behind(fetched.slice.position + fetched.size_bytes)
    end = fetched.end_offset if behind is None else min(behind, fetched.end_offset)
    nothing = LogSlice(None, 0, offset), list[AbortedTxn]()
    try:
        search = _Search(indexes, offset, end, aborted_max)
        if search.end == end:
            return fetched, search.found
        # Only whole batches are returned: the one that holds the new end is left out.
        limit = segment.find(search.end)
        size_bytes = limit[0] - fetched.slice.position if limit is not None else 0
        if size_bytes <= 0:
            if not at_least_one:
                return nothing
            first = next(
                scan(segment.file, fetched.slice.position, segment.file.size, whole=False, read_bytes=HEADER_BYTES)
            ).header
            search = _Search(indexes, offset, first.next_offset, INT64_MAX)
            size_bytes = first.size_bytes
    except _Unfinished:
        return nothing
    slice_ = FileSlice(segment.file, fetched.slice.position, size_bytes)
    return LogSlice(slice_, size_bytes, search.end), search.found


def _indexes(log: LogState, start: int) -> list[AbortedIndex]:
    """Return the indexes of transactions that were aborted at `start` or later."""
    first = max(bisect_right(log.bases, start) - 1, 0)
    return [segment.aborted for segment in log.segments[first:] if segment.aborted.count]


class _Search:
    """Finds the aborted transactions that overlap [start, end), at most `most`; if there are more, `end` is lowered."""

    def __init__(self, indexes: Sequence[AbortedIndex], start: int, end: int, most: int) -> None:
        self.end = end
        self.found: list[AbortedTxn] = []
        self._blocks_left = ABORTED_BLOCKS_SUMMARIZED_MAX
        at, number = self._take_ended(indexes, start, most)
        for index in indexes[at:]:
            if self._take_open(index, number):
                break
            number = 0
        if len(self.found) > most:
            # A shorter range has fewer transactions: keep those that begin first.
            self.found.sort(key=lambda txn: txn.first_offset)
            self.end = self.found[most].first_offset
            del self.found[most:]

    def _take_ended(self, indexes: Sequence[AbortedIndex], start: int, most: int) -> tuple[int, int]:
        """Take transactions with a marker in the range; return the numbers of the index and the entry behind them."""
        for at, index in enumerate(indexes):
            first, end = 0 if at else index.number_at(start), index.number_at(self.end)
            room = most - len(self.found)
            if end - first > room:
                end = first + room
                self.end = index.entry(end).last_offset
            self.found += index.entries(first, end)
            if end < index.count:
                return at, end
        return len(indexes), 0

    def _take_open(self, index: AbortedIndex, number: int) -> bool:
        """Take transactions, from an entry on, that began before the end of the range; True when there are no more."""
        end = self.end
        step = _FIRST_STEP_ENTRIES
        while number < index.count:
            block, within = divmod(number, BLOCK_ENTRIES)
            if not within and block < index.count // BLOCK_ENTRIES:
                first_offset, stable = self._block(index, block)
                if first_offset >= end:
                    if stable >= end:
                        return True
                    number += BLOCK_ENTRIES
                    continue
                step = BLOCK_ENTRIES
            entries = index.entries(number, min(number + step, (block + 1) * BLOCK_ENTRIES))
            for txn in entries:
                if txn.first_offset < end:
                    self.found.append(txn)
                if txn.last_stable_offset >= end:
                    return True
            number += len(entries)
            step *= 2
        return False

    def _block(self, index: AbortedIndex, number: int) -> tuple[int, int]:
        while index.known_blocks <= number:
            if not self._blocks_left:
                raise _Unfinished
            self._blocks_left -= 1
            index.summarize_next_block()
        return index.block(number)
