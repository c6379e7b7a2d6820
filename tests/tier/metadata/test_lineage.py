"""Which segments are of the leader's history, and how far: tables. `test_kafka.py` compares with Kafka's rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tier.metadata.making import copied, epochs, lineage

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.lineage import Lineage, with_records


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], []),
        ([(0, 0)], [(0, 0)]),
        ([(0, 0), (1, 10)], [(0, 0), (1, 10)]),
        ([(4, 40), (5, 60), (6, 60), (7, 70)], [(4, 40), (6, 60), (7, 70)]),
        ([(0, 0), (1, 0), (2, 0)], [(2, 0)]),
    ],
)
def test_epochs_without_records_are_left_out(given: list[tuple[int, int]], kept: list[tuple[int, int]]) -> None:
    assert with_records(epochs(given)) == tuple(kept)


KNOWN = lineage((5, 10), (7, 15), (9, 100), end=200)


def test_epochs_of_offsets() -> None:
    assert [KNOWN.epoch_at(offset) for offset in (9, 10, 14, 15, 99, 100, 500)] == [None, 5, 5, 7, 7, 9, 9]
    assert [KNOWN.end_offset(LeaderEpoch(epoch)) for epoch in (4, 5, 6, 7, 9)] == [None, 15, None, 100, 200]
    assert KNOWN.within(12, 100) == ((5, 12), (7, 15), (9, 100))
    assert KNOWN.within(12, 14) == ((5, 12),)
    assert KNOWN.within(9, 14) == ()
    assert list(KNOWN.epochs_from(20)) == [(7, 20), (9, 100)]
    assert list(KNOWN.epochs_from(0)) == [(5, 10), (7, 15), (9, 100)]
    assert (KNOWN.first_epoch, Lineage((), 0).first_epoch) == (5, None)


@pytest.mark.parametrize(
    ("start", "end", "starts", "has", "through"),
    [
        # Of one epoch.
        (20, 90, ((7, 20),), True, 90),
        (20, 99, ((7, 20),), True, 99),
        (20, 100, ((7, 20),), False, 99),  # it has offsets of epoch 7 that the leader has of epoch 9
        (14, 90, ((7, 14),), False, None),  # epoch 7 begins at 15
        (100, 199, ((9, 100),), True, 199),
        (100, 200, ((9, 100),), False, 199),  # beyond the leader's log
        (20, 90, ((6, 20),), False, None),
        (20, 90, ((4, 20),), False, None),
        (20, 90, ((10, 20),), False, None),
        # Of several epochs.
        (12, 90, ((5, 12), (7, 15)), True, 90),
        (12, 150, ((5, 12), (7, 15), (9, 100)), True, 150),
        (12, 150, ((5, 12), (7, 15), (8, 90), (9, 100)), False, 89),
        (12, 150, ((5, 12), (7, 15), (9, 101)), False, 99),
        (12, 150, ((5, 12), (9, 100)), False, 14),
        (12, 90, ((5, 12), (6, 15), (7, 15)), True, 90),  # epoch 6 has no records
        # The history was cut at 10: what came before is not known any more, and counts for nothing.
        (5, 50, ((5, 5), (7, 15)), True, None),
        (5, 50, ((3, 5), (5, 8), (7, 15)), True, None),
        (5, 9, ((5, 5),), True, None),
        (5, 9, ((3, 5),), False, None),
    ],
)
def test_segments(start: int, end: int, starts: tuple[tuple[int, int], ...], has: bool, through: int | None) -> None:
    segment = copied("a", start, end, *starts)
    assert KNOWN.has(segment) is has
    assert KNOWN.readable_through(segment, start) == through


def test_a_segment_is_read_from_the_log_start_on() -> None:
    segment = copied("a", 5, 50, (3, 5), (5, 8), (7, 15))
    assert [KNOWN.readable_through(segment, offset) for offset in (9, 10, 20, 50, 51)] == [None, 50, 50, 50, None]


def test_without_a_history_nothing_is_the_leaders() -> None:
    empty = Lineage((), 0)
    assert not empty.has(copied("a", 0, 9))
    assert empty.readable_through(copied("a", 0, 9), 0) is None
    assert empty.within(0, 5) == ()


HISTORIES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=6).map(
    lambda steps: [
        (sum(1 + step for step, _ in steps[: at + 1]), sum(length for _, length in steps[:at]))
        for at in range(len(steps))
    ]
)


@settings(max_examples=300)
@given(HISTORIES, HISTORIES, st.integers(0, 20), st.integers(0, 30), st.integers(0, 30))
def test_read_exactly_as_far_as_the_epochs_are_the_same(
    known: list[tuple[int, int]], told: list[tuple[int, int]], length: int, end: int, offset: int
) -> None:
    """The model: offset by offset, the epoch that both have there."""
    known = [(epoch, start) for epoch, start in known if start <= end]
    told = [(epoch, start) for epoch, start in told if start <= length] or [(0, 0)]
    leader, segment = lineage(*known, end=end), copied("a", 0, length, *told)

    def epoch_of(history: list[tuple[int, int]], at: int, last: int) -> int | None:
        below = [epoch for epoch, start in history if start <= at <= last]
        return below[-1] if below else None

    expected = None
    for at in range(offset, 60):
        theirs = epoch_of(known, at, end - 1)
        if theirs is None or epoch_of(told, at, length) != theirs:
            break
        expected = at
    assert leader.readable_through(segment, offset) == expected
    if leader.has(segment):
        # What the segment has of epochs before the leader's first one is not compared.
        first = next(start for epoch, start in with_records(epochs(told)) if epoch >= leader.entries[0][0])
        first = max(first, leader.starts[0])
        assert first > length or leader.readable_through(segment, first) == length
