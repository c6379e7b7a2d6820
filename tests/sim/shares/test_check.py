"""The book of a share group sees what is wrong, and lets pass what is not."""

from collections.abc import Callable

import pytest

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.sim.shares.check import ACCEPT, REJECT, RELEASE, ShareBook

A = TopicPartition("t", 0)
LOCK_SECONDS = 4.0


class Bench:
    """A book, a clock and a node."""

    def __init__(self, *, locks_last: bool = True) -> None:
        self.wrong: list[str] = []
        self.now_seconds = 0.0
        self.disturbances = 0
        self.connected = True
        self.book = ShareBook(
            "q", 3, self.wrong.append, lambda: self.now_seconds, lambda: self.disturbances, locks_last=locks_last
        )

    def get(self, member: str, offset: int, count: int = 1) -> None:
        asked = self.book.asking(member)
        self.book.answered(asked)
        self.book.acquired(asked, A, offset, count, LOCK_SECONDS, lambda: self.connected)

    def acknowledge(self, member: str, offset: int, kind: int, error: int | None = 0) -> None:
        sent = self.book.acknowledging(member, {A: {offset: kind}})
        if error is not None:
            self.book.acknowledged(sent, A, error)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("kind", [ACCEPT, REJECT])
def test_done_is_done(bench: Bench, kind: int) -> None:
    bench.get("x", 5)
    late = bench.book.asking("y")  # its answer may have been made before
    bench.acknowledge("x", 5, kind)
    bench.book.acquired(late, A, 5, 1, LOCK_SECONDS, lambda: True)
    assert not bench.wrong
    bench.get("y", 5)
    assert bench.wrong == ["share group q, t-0 at 5: y gets it although it is done"]


def test_who_was_refused_or_not_answered_gets_it_again(bench: Bench) -> None:
    for error in (None, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        bench.get("x", 5)
        bench.acknowledge("x", 5, ACCEPT, error)
    bench.get("y", 5)
    assert not bench.wrong


def test_deliveries_are_counted(bench: Bench) -> None:
    bench.get("x", 5, 1)
    bench.acknowledge("x", 5, RELEASE)
    bench.get("x", 5, 2)
    bench.acknowledge("x", 5, RELEASE, None)
    bench.get("x", 5, 2)
    bench.acknowledge("x", 5, RELEASE)
    assert not bench.wrong
    bench.get("x", 5, 2)
    assert bench.wrong == ["share group q, t-0 at 5: delivery 2 after 2 answered releases"]


def test_no_delivery_is_beyond_the_limit(bench: Bench) -> None:
    bench.get("x", 5, 3)
    assert not bench.wrong
    bench.get("x", 6, 4)
    assert bench.wrong == ["share group q, t-0 at 6: delivery 4, but 3 is the limit"]


def test_one_holder(bench: Bench) -> None:
    bench.get("x", 5)
    bench.get("x", 5)
    assert not bench.wrong
    bench.get("y", 5)
    assert bench.wrong == ["share group q, t-0 at 5: y gets it while x holds it"]


ENDS: list[Callable[[Bench], object]] = [
    lambda bench: setattr(bench, "now_seconds", LOCK_SECONDS),
    lambda bench: setattr(bench, "disturbances", 1),
    lambda bench: setattr(bench, "connected", False),
    lambda bench: bench.book.gone("x"),
    lambda bench: bench.acknowledge("x", 5, RELEASE, None),
]


@pytest.mark.parametrize("end", ENDS)
def test_a_hold_ends(bench: Bench, end: Callable[[Bench], object]) -> None:
    bench.get("x", 5)
    end(bench)
    bench.get("y", 5)
    assert not bench.wrong


def test_who_holds_may_acknowledge(bench: Bench) -> None:
    bench.get("x", 5)
    bench.acknowledge("x", 5, ACCEPT, ErrorCode.INVALID_RECORD_STATE)
    assert bench.wrong == ["share group q, t-0 at 5: x holds it, but may not acknowledge it"]
    bench.get("x", 6)
    bench.now_seconds = LOCK_SECONDS
    bench.acknowledge("x", 6, ACCEPT, ErrorCode.INVALID_RECORD_STATE)
    assert len(bench.wrong) == 1


def test_disks_that_fail_may_end_locks() -> None:
    bench = Bench(locks_last=False)
    bench.get("x", 5)
    bench.get("y", 5)
    assert not bench.wrong


def test_nothing_is_lost(bench: Bench) -> None:
    bench.get("x", 0)
    bench.acknowledge("x", 0, ACCEPT)
    bench.get("x", 1)
    bench.acknowledge("x", 1, REJECT, None)
    bench.get("x", 2, 3)
    bench.book.judge(A, 0, 3)
    assert not bench.wrong
    bench.get("x", 3, 2)
    bench.acknowledge("x", 3, RELEASE)
    bench.book.judge(A, 0, 5)
    assert bench.wrong == ["share group q, t-0 at 3: it and 1 others are neither done nor to be had"]


def test_deliveries_that_nobody_saw_count_too(bench: Bench) -> None:
    bench.get("x", 0, 2)
    bench.book.asking("x")  # never answered
    bench.book.judge(A, 0, 1)
    assert not bench.wrong
