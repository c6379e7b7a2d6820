"""StateBatch: ranges of offsets in one delivery state, and merging old and new ranges into one list.

A leader writes only what changed, so ranges of different writes overlap. For each offset the more advanced one wins:
the higher delivery count, and with equal counts the higher state (final states have the highest numbers). So the order
of writes does not matter, and writing something twice changes nothing.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

NO_OFFSET = -1  # as a start offset: not decided yet; the leader decides it when it first reads the state

AVAILABLE = 0
ACQUIRED = 1
ACKNOWLEDGED = 2
ARCHIVED = 4


class StateBatch(NamedTuple):
    """All offsets from first to last, both included, are in one state."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


_first_offset, _last_offset = itemgetter(0), itemgetter(1)


def combine(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Return the merged ranges without overlaps, in order, with neighbours joined; offsets below the start are
    dropped.
    """
    waiting = sorted(_from(batches, start_offset))
    open_: list[tuple[int, int, int]] = []  # heap: the most advanced batch that may cover `position` is first
    combined: list[StateBatch] = []
    position = taken = 0
    while taken < len(waiting) or open_:
        if not open_:
            position = waiting[taken].first_offset
        while taken < len(waiting) and waiting[taken].first_offset <= position:
            batch = waiting[taken]
            heapq.heappush(open_, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            taken += 1
        count, state, last = open_[0]
        if last < position:
            heapq.heappop(open_)
            continue
        if taken < len(waiting):  # the next one may be more advanced
            last = min(last, waiting[taken].first_offset - 1)
        _extend(combined, StateBatch(position, last, -state, -count))
        position = last + 1
    return tuple(combined)


def combine_into(
    combined: tuple[StateBatch, ...], more: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return `combine` of both, at the cost of the batches near the new ones only: most of many stay as they are."""
    if more:
        first = min(batch.first_offset for batch in more) - 1  # neighbours may be joined
        last = max(batch.last_offset for batch in more) + 1
        low = bisect_left(combined, first, key=_last_offset)
        high = bisect_right(combined, last, lo=low, key=_first_offset)
        combined = (*combined[:low], *combine((*combined[low:high], *more), NO_OFFSET), *combined[high:])
    kept = bisect_left(combined, start_offset, key=_last_offset)
    if kept < len(combined) and combined[kept].first_offset < start_offset:
        return (combined[kept]._replace(first_offset=start_offset), *combined[kept + 1 :])
    return combined[kept:]


def _from(batches: Iterable[StateBatch], start_offset: int) -> Iterable[StateBatch]:
    for batch in batches:
        if batch.last_offset >= start_offset:
            yield batch._replace(first_offset=max(batch.first_offset, start_offset))


def _extend(combined: list[StateBatch], batch: StateBatch) -> None:
    assert batch.first_offset <= batch.last_offset, f"{batch} is empty"
    if combined:
        last = combined[-1]
        assert last.last_offset < batch.first_offset, f"{batch} overlaps {last}"
        if last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            combined[-1] = last._replace(last_offset=batch.last_offset)
            return
    combined.append(batch)
