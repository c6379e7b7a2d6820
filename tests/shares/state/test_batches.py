"""Combining ranges, against a model that knows each offset by itself."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.shares.state.batches import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    NO_OFFSET,
    StateBatch,
    _extend,
    combine,
    combine_into,
)

STATES = st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED])


@st.composite
def batches(draw: st.DrawFn) -> list[StateBatch]:
    ranges = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), STATES, st.integers(1, 3)), max_size=12))
    return [StateBatch(first, first + length, state, count) for first, length, state, count in ranges]


def offsets(found: tuple[StateBatch, ...] | list[StateBatch]) -> dict[int, tuple[int, int]]:
    """For each offset the furthest that is known: (deliveries, state)."""
    known: dict[int, tuple[int, int]] = {}
    for batch in found:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            here = (batch.delivery_count, batch.delivery_state)
            known[offset] = max(known.get(offset, here), here)
    return known


@given(batches(), st.integers(-1, 45))
def test_each_offset_is_as_its_strongest_batch(some: list[StateBatch], start: int) -> None:
    combined = combine(some, start)
    assert offsets(combined) == {offset: known for offset, known in offsets(some).items() if offset >= start}


@given(batches(), st.integers(-1, 45))
def test_no_overlap_no_joinable_neighbours(some: list[StateBatch], start: int) -> None:
    combined = combine(some, start)
    for one, other in pairwise(combined):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or one[2:] != other[2:]


@given(batches(), batches())
def test_the_order_of_writing_does_not_matter(one: list[StateBatch], other: list[StateBatch]) -> None:
    both = combine([*one, *other], NO_OFFSET)
    assert both == combine([*other, *one], NO_OFFSET)
    assert both == combine([*combine(one, NO_OFFSET), *other], NO_OFFSET)
    assert both == combine([*both, *one], NO_OFFSET)


@given(batches(), batches(), st.integers(-1, 45))
def test_a_few_more_make_the_same_of_many(many: list[StateBatch], few: list[StateBatch], start: int) -> None:
    assert combine_into(combine(many, NO_OFFSET), few, start) == combine([*many, *few], start)


def test_examples() -> None:
    """A range split by a later release, and the part that the start offset leaves of it."""
    some = [StateBatch(10, 19, ACKNOWLEDGED, 1), StateBatch(12, 14, AVAILABLE, 2), StateBatch(20, 25, ACKNOWLEDGED, 1)]
    assert combine(some, 13) == (StateBatch(13, 14, AVAILABLE, 2), StateBatch(15, 25, ACKNOWLEDGED, 1))
    assert combine([], 5) == ()
    assert combine([StateBatch(9, 3, AVAILABLE, 1)], NO_OFFSET) == ()


def test_ranges_that_overlap_are_found() -> None:
    combined = [StateBatch(0, 4, AVAILABLE, 1)]
    with pytest.raises(AssertionError, match="overlaps"):
        _extend(combined, StateBatch(4, 5, ACKNOWLEDGED, 1))
    with pytest.raises(AssertionError, match="is empty"):
        _extend(combined, StateBatch(6, 5, ACKNOWLEDGED, 1))
