"""RecordRanges: the offsets of a share-partition that have a state, as runs of neighbours in the same state.

Sorted and disjoint. Offsets between two runs, or beyond the last, were never acquired. If consumers acknowledge
everything they acquire, the list stays very short; if they pick single records it gets as long as the records in
flight.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from ottla.shares.partition.terms import RecordState

_TERMINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Lot:
    """Offsets that were first acquired together. A lot keeps its size when parts of it are done."""

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class RecordRange:
    """Consecutive offsets in the same state.

    `until_ms` is the end of the lock of ACQUIRED records, and the time before which AVAILABLE ones may not be acquired.
    While a change is being stored `write` is its token, and `before` the state to go back to if that fails. Records
    that were never acquired have no `lot`.
    """

    __slots__ = ("before", "count", "first", "last", "lot", "member", "state", "until_ms", "write")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        count: int = 0,
        member: str = "",
        until_ms: int = 0,
        lot: Lot | None = None,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member = member
        self.until_ms = until_ms
        self.lot = lot
        self.write = 0
        self.before: tuple[RecordState, int, str, int] | None = None

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def terminal(self) -> bool:
        return self.state in _TERMINAL

    def free(self, now_ms: int) -> bool:
        """Whether AVAILABLE records may be acquired now."""
        return not self.write and self.until_ms <= now_ms

    def like(self, other: RecordRange) -> bool:
        return (
            self.state is other.state
            and self.write == other.write == 0
            and (
                self.terminal
                or (
                    self.lot is other.lot
                    and (self.count, self.member, self.until_ms) == (other.count, other.member, other.until_ms)
                )
            )
        )

    def __repr__(self) -> str:
        pending = " (being stored)" if self.write else ""
        return f"{self.first}-{self.last} {self.state.name.lower()} {self.count}{pending}"


class RecordRanges:
    def __init__(self) -> None:
        self.items: list[RecordRange] = []
        self._firsts: list[int] = []

    def __iter__(self) -> Iterator[RecordRange]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def floor(self, offset: int) -> int:
        """Return the index of the last range that begins at or before `offset`; -1 if there is none."""
        return bisect_right(self._firsts, offset) - 1

    def find(self, offset: int) -> int:
        """Return the index of the range that holds `offset`, else of the first one after it."""
        index = bisect_right(self._firsts, offset) - 1
        return index if index >= 0 and self.items[index].last >= offset else index + 1

    def add(self, new: RecordRange) -> None:
        """Add a range of offsets that have no state yet."""
        index = bisect_left(self._firsts, new.first)
        assert index == len(self.items) or new.last < self.items[index].first, "ranges are disjoint"
        assert index == 0 or self.items[index - 1].last < new.first, "ranges are disjoint"
        self.items.insert(index, new)
        self._firsts.insert(index, new.first)

    def append_or_add(self, new: RecordRange) -> None:
        """Like `add`, for a range that is nearly always beyond the last one; extend the last one if it is in the same
        state.
        """
        items = self.items
        if items and items[-1].last >= new.first:
            self.add(new)
        elif items and items[-1].last + 1 == new.first and items[-1].like(new):
            items[-1].last = new.last
        else:
            items.append(new)
            self._firsts.append(new.first)

    def remove(self, item: RecordRange) -> None:
        index = bisect_left(self._firsts, item.first)
        assert self.items[index] is item, "one of ours"
        del self.items[index], self._firsts[index]

    def split(self, offset: int) -> None:
        """Split the range that contains both `offset - 1` and `offset`. A range that is being stored is never split."""
        index = bisect_right(self._firsts, offset) - 1
        if index < 0:
            return
        found = self.items[index]
        if not found.first < offset <= found.last:
            return
        assert not found.write, "what is being stored stays whole"
        rest = RecordRange(offset, found.last, found.state, found.count, found.member, found.until_ms, found.lot)
        found.last = offset - 1
        self.items.insert(index + 1, rest)
        self._firsts.insert(index + 1, offset)

    def between(self, first: int, last: int) -> list[RecordRange]:
        """Return the ranges within [first, last], split at both ends."""
        self.split(first)
        self.split(last + 1)
        return self.items[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def holes(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the runs of offsets in [first, last] that have no state."""
        found = []
        index = self.find(first)
        while first <= last:
            if index == len(self.items) or self.items[index].first > last:
                found.append((first, last))
                break
            item = self.items[index]
            if item.first > first:
                found.append((first, item.first - 1))
            first = item.last + 1
            index += 1
        return found

    def merge(self, first: int, last: int) -> None:
        """Merge neighbours in the same state in and around [first, last]."""
        index = max(self.find(first) - 1, 0)
        items, firsts = self.items, self._firsts
        while index + 1 < len(items) and items[index].last < last + 1:
            left, right = items[index], items[index + 1]
            if left.last + 1 == right.first and left.like(right):
                left.last = right.last
                del items[index + 1], firsts[index + 1]
            else:
                index += 1

    def drop_below(self, offset: int) -> list[RecordRange]:
        """Remove and return everything below `offset`; a range across it keeps its upper part, even if it is being
        stored.
        """
        count = bisect_left(self._firsts, offset)
        if count and self.items[count - 1].last >= offset:
            count -= 1
            across = self.items[count]
            gone = RecordRange(across.first, offset - 1, across.state, across.count, across.member, across.until_ms)
            gone.write = across.write
            across.first = self._firsts[count] = offset
            dropped = [*self.items[:count], gone]
        else:
            dropped = self.items[:count]
        del self.items[:count], self._firsts[:count]
        return dropped
