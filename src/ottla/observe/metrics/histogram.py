"""Histogram: counts values in fixed buckets, so that adding one is cheap and two histograms can be merged.

Buckets are log-linear: each power of two is divided into `2 ** _BITS` equal ones, and whole numbers below that have a
bucket each. A quantile is the middle of its bucket, so it is off by at most `RELATIVE_ERROR_MAX` of itself. All
histograms have the same buckets: the sum of two is that of all their values, and the difference of a histogram and an
older copy of it is that of the values in between.
"""

from __future__ import annotations

from collections.abc import Sequence

_BITS = 4
_PER_DOUBLING = 1 << _BITS
_QUICK_BELOW = 1 << 10
# 2 ** 40 microseconds are twelve days; what is larger counts as that.
_LARGEST = (1 << 40) - 1

RELATIVE_ERROR_MAX = 1 / (2 * _PER_DOUBLING)


def bucket_of(value: int) -> int:
    """Return the index of the bucket that a whole number, not below 0, is in."""
    if value < _PER_DOUBLING:
        return value
    if value > _LARGEST:
        value = _LARGEST
    shift = value.bit_length() - _BITS - 1
    return (shift << _BITS) + (value >> shift)


BUCKETS = bucket_of(_LARGEST) + 1


def middle_of(bucket: int) -> float:
    """Return the value that stands for those of a bucket."""
    if bucket < _PER_DOUBLING:
        return bucket
    shift = (bucket >> _BITS) - 1
    low = (bucket - (shift << _BITS)) << shift
    return low + ((1 << shift) - 1) / 2


class Histogram:
    """A histogram of whole numbers, such as microseconds."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.sum = 0

    def add(self, value: int) -> None:
        """Count a value, not below 0."""
        self.sum += value
        if value >= _PER_DOUBLING:
            if value > _LARGEST:
                value = _LARGEST
            shift = value.bit_length() - _BITS - 1
            value = (shift << _BITS) + (value >> shift)
        self.counts[value] += 1

    @property
    def count(self) -> int:
        return sum(self.counts)

    def merge(self, other: Histogram) -> None:
        """Add all values of another histogram."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum

    def since(self, older: Histogram) -> Histogram:
        """Return the histogram of the values that came after `older` was copied from this one."""
        new = Histogram()
        new.counts = [now - then for now, then in zip(self.counts, older.counts, strict=True)]
        new.sum = self.sum - older.sum
        return new

    def copy(self) -> Histogram:
        new = Histogram()
        new.counts = self.counts.copy()
        new.sum = self.sum
        return new

    def quantiles(self, wanted: Sequence[float]) -> list[float]:
        """Return the values below which these parts (ascending, from 0 to 1) of all values are; NaN if there are
        none.
        """
        total = self.count
        if not total:
            return [float("nan")] * len(wanted)
        found: list[float] = []
        passed = 0
        for bucket, count in enumerate(self.counts):
            passed += count
            while len(found) < len(wanted) and passed and passed >= wanted[len(found)] * total:
                found.append(middle_of(bucket))
        return found


class QuickTimes:
    """A RecentHistogram of times that are mostly short, on a path where a call for each is too expensive.

    The path counts a time by `below[microseconds] += 1`, and one that is no index of it by `add`. They are put into the
    histogram when somebody looks at it.
    """

    __slots__ = ("_recent", "below")

    def __init__(self) -> None:
        self.below = [0] * _QUICK_BELOW
        self._recent = RecentHistogram()

    def add(self, value: int) -> None:
        self._recent.all.add(value)

    @property
    def histogram(self) -> RecentHistogram:
        below, every = self.below, self._recent.all
        if any(below):
            for value, count in enumerate(below):
                if count:
                    every.counts[bucket_of(value)] += count
                    every.sum += value * count
                    below[value] = 0
        return self._recent


class RecentHistogram:
    """A histogram of all values since the start, and of the recent ones: those since the last `turn` but one."""

    __slots__ = ("_before", "_last", "all")

    def __init__(self) -> None:
        self.all = Histogram()
        self._last = self._before = Histogram()  # copies of it when `turn` was called the last time, and before that

    def turn(self) -> None:
        """Begin another interval."""
        self._before, self._last = self._last, self.all.copy()

    def recent(self) -> Histogram:
        """Return the values of this interval and of the one before it."""
        return self.all.since(self._before)
