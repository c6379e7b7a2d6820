"""The book of a consumer group sees what is wrong, and lets pass what is not."""

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.group_check import GroupBook

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def wrong() -> list[str]:
    return []


@pytest.fixture
def book(wrong: list[str]) -> GroupBook:
    return GroupBook("g", wrong.append, patience_seconds=5.0)


def commit(book: GroupBook, member: str, generation: int, offset: int, *, took_seconds: float = 1.0) -> None:
    book.committed(book.committing(member, generation, {A: offset}, 10.0), 10.0 + took_seconds)


def test_a_partition_changes_hands_between_generations(book: GroupBook, wrong: list[str]) -> None:
    book.assigned("x", 1, [A, B])
    book.assigned("x", 2, [A])
    book.assigned("y", 2, [B])
    book.assigned("y", 2, [B])
    assert not wrong


def test_two_owners_in_one_generation(book: GroupBook, wrong: list[str]) -> None:
    book.assigned("x", 1, [A, B])
    book.assigned("y", 1, [B])
    assert wrong == ["group g, t-1: x and y both own it in generation 1"]


def test_commits_of_one_generation_come_from_one_member(book: GroupBook, wrong: list[str]) -> None:
    commit(book, "x", 1, 5)
    commit(book, "y", 1, 6)
    assert "x and y both committed in generation 1" in wrong[0]


def test_a_commit_of_a_generation_that_is_over(book: GroupBook, wrong: list[str]) -> None:
    commit(book, "x", 1, 5)
    under_way = book.committing("x", 1, {A: 6}, 0.0)
    commit(book, "y", 2, 7)
    book.committed(under_way, 1.0)  # sent before the other one was answered
    commit(book, "y", 2, 8)
    assert not wrong
    commit(book, "x", 1, 9)
    assert "although y had in 2" in wrong[0]


def test_committed_offsets_go_on(book: GroupBook, wrong: list[str]) -> None:
    commit(book, "x", 1, 5)
    book.found({A: 5}, book.floors())
    before = book.floors()
    commit(book, "x", 1, 9)
    book.found({A: 5}, before)  # asked before the commit was answered
    book.found({A: 9}, book.floors())
    assert not wrong


@pytest.mark.parametrize(
    ("found", "what"),
    [
        ({A: 5}, "went back from 9 to 5"),
        ({}, "offset 9 was committed and is forgotten"),
        ({A: 7}, "nobody committed 7"),
    ],
)
def test_committed_offsets_do_not_change_by_themselves(
    book: GroupBook, wrong: list[str], found: dict[TopicPartition, int], what: str
) -> None:
    commit(book, "x", 1, 5)
    commit(book, "x", 1, 9)
    book.found(found, book.floors())
    assert what in wrong[0]


def test_what_was_seen_stays_too(book: GroupBook, wrong: list[str]) -> None:
    commit(book, "x", 1, 5)
    book.committing("x", 1, {A: 9}, 0.0)  # never answered, but it took effect
    book.found({A: 9}, book.floors())
    book.found({A: 5}, book.floors())
    assert "went back from 9 to 5" in wrong[0]


@pytest.mark.parametrize("answered", [False, True])
def test_a_commit_that_was_sent_twice_may_arrive_late(book: GroupBook, wrong: list[str], answered: bool) -> None:
    late = book.committing("x", 1, {A: 5}, 0.0)
    if answered:
        book.committed(late, 6.0)
    commit(book, "x", 1, 9)
    book.found({A: 5}, book.floors())
    assert not wrong


def test_nothing_is_skipped(book: GroupBook, wrong: list[str]) -> None:
    for offset in (3, 4, 6):
        book.handed_out(A, offset)
    book.judge({A: 5}, {A: 3})
    assert not wrong
    book.judge({A: 7}, {A: 3})
    assert wrong == ["group g, t-0: 7 is committed, but nobody got [5]"]
