"""The goal about bytes: brokers exchange replicas of different size, so that disks fill evenly and counts stay even.

Copying is expensive, so brokers near the mean are left alone, and exchanges that would hardly improve anything are not
made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ottla.cluster.balance.layout import Layout
from ottla.model import limits
from ottla.model.ids import TopicPartition

# How far a broker may be from the mean before anything is copied.
TOLERANCE = 0.1
# The least that one exchange has to improve, as a fraction of the mean.
_WORTHWHILE = 0.02


def even_bytes(layout: Layout) -> None:
    """Exchange replicas between the broker with the most bytes and others with less."""
    takers = layout.takers
    total = sum(layout.size_bytes[each] for each in takers)
    mean = total / (sum(layout.capacity(each) for each in takers) or 1)
    for _ in range(limits.BALANCE_EXCHANGES_MAX):
        if not total or not _exchange_one(layout, mean):
            return


def _filled(layout: Layout, broker: int) -> float:
    return layout.size_bytes[broker] / layout.capacity(broker)


def _exchange_one(layout: Layout, mean: float) -> bool:
    by_bytes = sorted(layout.takers, key=lambda each: (_filled(layout, each), each))
    for full in reversed(by_bytes):
        for empty in by_bytes:
            gap = _filled(layout, full) - _filled(layout, empty)
            too_full = _filled(layout, full) > (1 + TOLERANCE) * mean
            too_empty = _filled(layout, empty) < (1 - TOLERANCE) * mean
            if not (too_full or too_empty) or gap <= 2 * _WORTHWHILE * mean:
                break
            found = _best_exchange(layout, full, empty, least_bytes=_WORTHWHILE * mean)
            if found is not None:
                large, small = found
                layout.replace(large, full, empty)
                if small is not None:
                    layout.replace(small, empty, full)
                return True
    return False


def _best_exchange(
    layout: Layout, full: int, empty: int, least_bytes: float
) -> tuple[TopicPartition, TopicPartition | None] | None:
    """Return a replica of the full broker and a smaller one of the empty broker (None, if a move alone keeps the counts
    even) whose difference comes nearest to what would make both equally full.
    """
    ideal = layout.ideal_shift(full, empty)
    sizes = layout.partitions
    smaller = sorted((sizes[at].size_bytes, at) for at in layout.held[empty])
    keys = [each[0] for each in smaller]
    best: tuple[float, TopicPartition, TopicPartition | None] | None = None
    may_just_move = layout.relief(full, empty) >= 0
    for large in sorted(layout.held[full]):
        wanted_bytes = sizes[large].size_bytes - ideal
        for size_bytes, small in _near(smaller, keys, wanted_bytes, may_just_move):
            shift = sizes[large].size_bytes - size_bytes
            if not least_bytes < shift < 2 * ideal - least_bytes:
                continue
            distance = abs(shift - ideal)
            if (best is None or distance < best[0]) and _may(layout, large, full, small, empty):
                best = (distance, large, small)
    return None if best is None else (best[1], best[2])


def _near(
    smaller: list[tuple[int, TopicPartition]], keys: list[int], wanted_bytes: float, may_just_move: bool
) -> Iterator[tuple[int, TopicPartition | None]]:
    """Yield replicas whose size is near the wanted one."""
    if may_just_move:
        yield 0, None
    position = bisect_left(keys, wanted_bytes)
    for index in range(max(0, position - 2), min(len(smaller), position + 2)):
        yield smaller[index]


def _may(layout: Layout, large: TopicPartition, full: int, small: TopicPartition | None, empty: int) -> bool:
    if not layout.may_replace(large, full, empty):
        return False
    return small is None or (small != large and layout.may_replace(small, empty, full))
