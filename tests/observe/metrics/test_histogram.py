"""Histograms: the error of a quantile, sums and differences of histograms, the quantiles of the last minutes."""

from __future__ import annotations

from math import ceil, isnan

from hypothesis import given
from hypothesis import strategies as st

from ottla.observe.metrics.declaration import QUANTILES
from ottla.observe.metrics.histogram import (
    BUCKETS,
    RELATIVE_ERROR_MAX,
    Histogram,
    QuickTimes,
    RecentHistogram,
    bucket_of,
    middle_of,
)

LARGEST = (1 << 40) - 1
VALUES = st.lists(st.one_of(st.integers(0, 100), st.integers(0, LARGEST)), min_size=1, max_size=200)


def histogram(values: list[int]) -> Histogram:
    made = Histogram()
    for value in values:
        made.add(value)
    return made


@given(st.integers(0, LARGEST))
def test_a_bucket_stands_for_its_values(value: int) -> None:
    assert abs(middle_of(bucket_of(value)) - value) <= max(value, 1) * RELATIVE_ERROR_MAX


@given(st.integers(0, LARGEST - 1))
def test_larger_values_have_larger_buckets(value: int) -> None:
    assert 0 <= bucket_of(value + 1) - bucket_of(value) <= 1


@given(VALUES)
def test_quantiles_are_those_of_the_values(values: list[int]) -> None:
    ordered = sorted(values)
    for wanted, found in zip(QUANTILES, histogram(values).quantiles(QUANTILES), strict=True):
        exact = ordered[max(0, ceil(wanted * len(ordered)) - 1)]
        assert abs(found - exact) <= max(exact, 1) * RELATIVE_ERROR_MAX


@given(VALUES, VALUES)
def test_merging_is_adding_all_values(some: list[int], others: list[int]) -> None:
    merged = histogram(some)
    merged.merge(histogram(others))
    both = histogram(some + others)
    assert (merged.counts, merged.sum, merged.count) == (both.counts, both.sum, len(some) + len(others))


@given(VALUES, VALUES)
def test_the_difference_to_an_older_copy_is_what_came_since(before: list[int], after: list[int]) -> None:
    growing = histogram(before)
    older = growing.copy()
    for value in after:
        growing.add(value)
    new = growing.since(older)
    assert (new.counts, new.sum) == (histogram(after).counts, sum(after))


def test_what_is_too_large_counts_as_the_largest() -> None:
    assert bucket_of(LARGEST + 1) == bucket_of(LARGEST) == BUCKETS - 1
    assert histogram([1 << 60]).counts[BUCKETS - 1] == 1


def test_nothing_has_no_quantiles() -> None:
    assert all(map(isnan, Histogram().quantiles(QUANTILES)))


def test_quantiles_of_the_last_minutes() -> None:
    recent = RecentHistogram()
    recent.all.add(1)
    recent.turn()
    recent.all.add(2)
    assert recent.recent().count == 2, "this interval and the one before it"
    recent.turn()
    assert recent.recent().counts == histogram([2]).counts
    recent.turn()
    assert recent.recent().count == 0
    assert recent.all.count == 2


@given(st.lists(st.integers(0, 5_000)))
def test_quick_times_are_counted_as_all_others(values: list[int]) -> None:
    times, plain = QuickTimes(), Histogram()
    for at, value in enumerate(values):
        plain.add(value)
        try:
            times.below[value] += 1
        except IndexError:
            times.add(value)
        if at % 7 == 0:
            assert times.histogram.all.count == at + 1, "looked at in between"
    found = times.histogram.all
    assert (found.counts, found.sum) == (plain.counts, plain.sum)
