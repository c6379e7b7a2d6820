"""Where records are in the remote tier, with the leader's history of epochs."""

from __future__ import annotations

from tests.tier.metadata.making import STARTED, copied, lineage, names, remote_log, segment

from ottla.tier.metadata.reading import (
    CopiedOffset,
    covered_through,
    earliest_offset,
    highest_copied,
    segment_for,
    segment_with_transactions,
    segments_since,
)

# Broker 1 led with epoch 5 and copied up to 150; broker 2 began with epoch 6 at 120, by an unclean election.
LOST = remote_log(copied("a", 0, 99, (4, 0), (5, 50)), copied("b", 100, 150, (5, 100)))
LEADER = lineage((4, 0), (5, 50), (6, 120), end=300)


def test_records_of_a_lost_history_are_not_found() -> None:
    found = [(offset, segment_for(LOST, LEADER, offset)) for offset in (0, 99, 100, 119, 120, 130)]
    told = {offset: it and (names([it.segment])[0], it.last_offset) for offset, it in found}
    assert told == {0: ("a", 99), 99: ("a", 99), 100: ("b", 119), 119: ("b", 119), 120: None, 130: None}
    assert covered_through(LOST, LEADER, 0) == 119
    assert covered_through(LOST, LEADER, 120) == 119
    # The copy of the new history is another segment, from where the old one agrees with it or from below.
    LOST_AND_NEW = remote_log(*LOST.segments(), copied("c", 110, 200, (5, 110), (6, 120)))
    assert covered_through(LOST_AND_NEW, LEADER, 0) == 200


def test_below_the_log_start_nothing_is_found() -> None:
    assert segment_for(LOST, lineage((5, 60), (6, 120), end=300), 59) is None


def test_a_gap_ends_what_is_covered() -> None:
    remote = remote_log(copied("a", 0, 9), segment("b", 10, 19, state=STARTED), copied("c", 20, 29))
    leader = lineage((0, 0), end=40)
    assert [covered_through(remote, leader, offset) for offset in (0, 5, 10, 20, 30)] == [9, 9, 9, 29, 29]
    assert highest_copied(remote, leader) == CopiedOffset(29, 0), "as in Kafka, which does not look for gaps"


def test_the_highest_offset_that_was_copied() -> None:
    assert highest_copied(LOST, LEADER) == CopiedOffset(119, 5), "150 is not of the leader's history"
    assert highest_copied(LOST, lineage((5, 60), end=300)) == CopiedOffset(150, 5)
    assert highest_copied(LOST, lineage((8, 0), end=300)) == CopiedOffset(-1, -1)
    assert highest_copied(remote_log(), LEADER) == CopiedOffset(-1, -1)


def test_the_earliest_offset() -> None:
    assert earliest_offset(LOST, LEADER) == 0
    assert earliest_offset(LOST, lineage((6, 120), end=300)) is None
    assert earliest_offset(remote_log(copied("b", 100, 150, (5, 100))), LEADER) == 100


def test_the_next_segment_with_transactions() -> None:
    plain = {"txn_index_empty": True}
    remote = remote_log(
        copied("a", 0, 9, (0, 0), **plain),
        copied("b", 10, 19, (0, 10), **plain),
        copied("c", 20, 29, (0, 20), (1, 25), **plain),
        copied("d", 30, 39, (1, 30)),
        copied("e", 40, 49, (1, 40), **plain),
    )
    leader = lineage((0, 0), (1, 25), end=60)
    found = {offset: segment_with_transactions(remote, leader, offset) for offset in (0, 15, 27, 30, 39, 40, 55)}
    assert {offset: it and names([it])[0] for offset, it in found.items()} == {
        **dict.fromkeys((0, 15, 27, 30, 39), "d"),
        **dict.fromkeys((40, 55)),
    }


def test_segments_with_records_since_a_time() -> None:
    remote = remote_log(
        copied("a", 0, 9, newest_ms=100),
        copied("b", 10, 19, newest_ms=50),
        copied("c", 20, 29, newest_ms=300),
        copied("d", 31, 39, newest_ms=400),
    )
    leader = lineage((0, 0), (1, 25), end=50)

    def since(timestamp_ms: int, offset: int = 0) -> list[tuple[str, int]]:
        found = segments_since(remote, leader, timestamp_ms, offset)
        return [(names([each.segment])[0], each.last_offset) for each in found]

    assert since(0) == since(50) == [("a", 9), ("b", 19), ("c", 24)], "epoch 0 ends before 25"
    assert since(51) == since(100) == [("a", 9), ("c", 24)]
    assert since(101) == since(300) == since(0, 20) == [("c", 24)]
    assert since(301) == since(0, 25) == []
