"""The machine kit, on a machine that hands out numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from ottla.machine.kit import Answer, ClockSet, Moment, OneByOne, Parked, Result, Timer
from ottla.machine.runner import Runner
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import CLOCK_STEP_MS, TIMER_RETRY_MS


class Take(NamedTuple):
    amount: int


class Wait(NamedTuple):
    token: str
    until_ms: int


class Remember(NamedTuple):
    what: str


class Expire(NamedTuple):
    token: str


class Again(NamedTuple):
    """A timer's command that wants to come again at once, for ever."""


class Counter(OneByOne):
    """State: how many were taken. Waiting commands are answered by the next Take, or by their timer."""

    def __init__(self) -> None:
        self.taken = 0
        self.waiting: list[str] = []
        self.notes: list[Any] = []

    def decide(self, command: Any, now_ms: int) -> Result[Any, Any]:
        match command:
            case Take(amount) if amount <= 0:
                raise ApiError(ErrorCode.INVALID_REQUEST, "take something")
            case Take(amount):
                answers = [Answer(token, "taken") for token in self.waiting]
                return Result(
                    [("take", amount), *(("done", token) for token in self.waiting)],
                    self.taken + amount,
                    [Timer(token, None) for token in self.waiting],
                    answers,
                )
            case Wait(token, until_ms):
                return Result([("wait", token)], Parked(token), [Timer(token, until_ms, Expire(token))])
            case Remember(what):
                return Result([("take", 1)], notes=[what], effects=[what])
            case Again():
                return Result([("take", 1)], timers=[Timer("again", now_ms - 5, command)])
            case Expire(token):
                return Result([("done", token)], answers=[Answer(token, "expired")])
            case _:
                return Result(reply=self.taken)

    def apply(self, record: tuple[str, Any]) -> Sequence[Any]:
        kind, value = record
        if kind == "take":
            self.taken += value
        elif kind == "wait":
            self.waiting.append(value)
        else:
            self.waiting.remove(value)
        return [record]

    def note(self, note: Any) -> None:
        self.notes.append((self.taken, note))


class Bench:
    """A runner on a journal in memory, and everything it said."""

    def __init__(self, *, in_turns: bool = False) -> None:
        self.journal: list[Any] = []
        self.replies: list[Any] = []
        self.changes: list[list[Any]] = []
        self.broken = False
        self.machine = Counter()
        self.effects: list[Any] = []
        self.turns: list[Callable[[], None]] = []  # those that were asked for
        soon = self.turns.append if in_turns else None
        self.runner: Runner[Any, Any, Any] = Runner(
            self.machine, self.append, self.changes.append, self.effects.append, soon
        )

    def append(self, records: Sequence[Any]) -> int:
        if self.broken:
            raise OSError("disk full")
        self.journal.extend(records)
        return len(self.journal)

    def submit(self, command: Any, now_ms: int = 0, steady_ms: int | None = None) -> None:
        self.runner.submit(command, Moment(now_ms, now_ms if steady_ms is None else steady_ms), self.replies.append)

    def wake(self, now_ms: int, steady_ms: int | None = None) -> None:
        self.runner.wake(Moment(now_ms, now_ms if steady_ms is None else steady_ms))

    def next_turn(self) -> None:
        turns, self.turns[:] = self.turns[:], []
        for turn in turns:
            turn()


def test_a_reply_waits_for_its_records() -> None:
    bench = Bench()
    bench.submit(Take(2))
    assert bench.replies == []
    assert bench.machine.taken == 2  # the next command already sees it
    bench.runner.commit(1)
    assert bench.replies == [2]


def test_replies_leave_in_order_and_reads_wait_for_what_they_saw() -> None:
    bench = Bench()
    bench.submit(Take(1))
    bench.submit("read")
    bench.submit(Take(5))
    bench.runner.commit(1)
    assert bench.replies == [1, 1]
    bench.runner.commit(2)
    assert bench.replies == [1, 1, 6]


def test_a_read_of_committed_state_answers_at_once() -> None:
    bench = Bench()
    bench.submit("read")
    assert bench.replies == [0]


def test_a_refusal_is_a_reply() -> None:
    bench = Bench()
    bench.submit(Take(0))
    assert isinstance(bench.replies[0], ApiError)
    assert bench.journal == []


def test_a_failed_append_leaves_the_state_alone() -> None:
    bench = Bench()
    bench.broken = True
    with pytest.raises(OSError, match="disk full"):
        bench.submit(Take(1))
    assert bench.machine.taken == 0
    assert bench.replies == []


def test_a_parked_command_is_answered_by_a_later_one() -> None:
    bench = Bench()
    bench.submit(Wait("a", 100))
    bench.submit(Wait("b", 50))
    bench.submit(Take(1))
    bench.runner.commit(len(bench.journal))
    assert bench.replies == ["taken", "taken", 1]
    assert bench.runner.next_deadline_ms is None  # their timers were cancelled


def test_timers_re_enter_as_commands_in_order_of_deadline() -> None:
    bench = Bench()
    bench.submit(Wait("late", 100))
    bench.submit(Wait("soon", 50))
    assert bench.runner.next_deadline_ms == 50
    bench.wake(49)
    assert bench.machine.waiting == ["late", "soon"]
    bench.wake(100)
    bench.runner.commit(len(bench.journal))
    assert bench.journal[2:] == [("done", "soon"), ("done", "late")]
    assert bench.replies == ["expired", "expired"]


def test_a_timer_set_again_replaces_the_old_one() -> None:
    bench = Bench()
    bench.submit(Wait("a", 50))
    bench.runner._set("a", 70, Expire("a"))
    bench.wake(60)
    assert bench.machine.waiting == ["a"]
    bench.wake(70)
    assert bench.machine.waiting == []


@pytest.mark.parametrize("by_ms", [3_600_000, -3_600_000])
def test_timers_do_not_care_for_the_time_of_day(by_ms: int) -> None:
    bench = Bench()
    noon_ms = 12 * 3_600_000
    bench.submit(Wait("late", noon_ms + 9_000), noon_ms, 500)
    bench.submit(Wait("soon", noon_ms + 6_000), noon_ms, 500)
    assert bench.runner.next_deadline_ms == 6_500
    bench.wake(noon_ms + by_ms + 5_999, 6_499)
    assert bench.machine.waiting == ["late", "soon"]
    bench.submit(Wait("new", noon_ms + by_ms + 7_000), noon_ms + by_ms + 5_999, 6_499)
    bench.wake(noon_ms + by_ms + 6_000, 6_500)
    assert bench.machine.waiting == ["late", "new"]
    bench.wake(noon_ms + by_ms + 7_000, 7_500)
    assert bench.machine.waiting == ["late"]
    assert bench.machine.notes == [(0, ClockSet(by_ms))], "once"


def test_a_clock_that_goes_a_little_wrong_was_not_set() -> None:
    bench = Bench()
    bench.submit("read", 10_000, 0)
    bench.submit("read", 10_000 + CLOCK_STEP_MS, 1)
    bench.submit("read", 10_000 - CLOCK_STEP_MS + 2, 1)
    assert bench.machine.notes == []


def test_observers_hear_what_changed_once_per_command() -> None:
    bench = Bench()
    bench.submit(Wait("a", 50))
    bench.submit(Take(3))
    assert bench.changes == [[("wait", "a")], [("take", 3), ("done", "a")]]


def test_replaying_the_journal_gives_the_same_state() -> None:
    bench = Bench()
    for command in (Take(1), Wait("x", 10), Take(4), Wait("y", 20)):
        bench.submit(command)
    again = Counter()
    for record in bench.journal:
        again.apply(record)
    assert (again.taken, again.waiting) == (bench.machine.taken, bench.machine.waiting)


def test_notes_follow_the_records_and_effects_the_commit() -> None:
    bench = Bench()
    bench.submit(Remember("milk"))
    assert bench.machine.notes == [(1, "milk")]
    assert bench.effects == []
    bench.runner.commit(1)
    assert bench.effects == ["milk"]
    assert bench.replies == [None]


def test_who_waits_is_told_when_the_runner_resigns() -> None:
    bench = Bench()
    bench.submit(Wait("a", 10))
    bench.submit(Remember("milk"))
    bench.runner.resign(ApiError(ErrorCode.NOT_COORDINATOR))
    assert [reply.code for reply in bench.replies] == [ErrorCode.NOT_COORDINATOR] * 2
    assert bench.effects == []
    assert bench.runner.next_deadline_ms is None


def test_who_waits_too_long_is_told_so_and_the_effects_still_follow_the_commit() -> None:
    bench = Bench()
    bench.submit(Remember("milk"), now_ms=1_000)
    bench.submit(Take(1), now_ms=1_400)
    assert bench.runner.waits_since_ms == 1_000
    bench.runner.give_up(1_000, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert [reply.code for reply in bench.replies] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert bench.runner.waits_since_ms == 1_400
    bench.runner.commit(2)
    assert bench.effects == ["milk"]
    assert bench.replies[1:] == [2]
    assert bench.runner.waits_since_ms is None


def test_records_that_the_journal_refuses_refuse_the_command() -> None:
    bench = Bench()
    bench.submit(Take(1))
    bench.runner.commit(1)

    def refuse(_: Sequence[Any]) -> int:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE)

    bench.runner._append = refuse
    bench.submit(Wait("a", 10))
    assert bench.replies[-1].code == ErrorCode.MESSAGE_TOO_LARGE
    assert bench.machine.waiting == [] and bench.runner.next_deadline_ms is None


def test_a_timer_that_is_put_off_again_and_again_takes_one_place() -> None:
    bench = Bench()
    bench.submit(Wait("a", 10))
    for until_ms in range(11, 1_000):
        bench.runner._set("a", until_ms, Expire("a"))
    assert len(bench.runner._deadlines) == 1
    bench.wake(998)
    assert bench.runner.next_deadline_ms == 999
    bench.runner._set("a", 20, Expire("a"))  # sooner after all
    assert bench.runner.next_deadline_ms == 20
    bench.wake(20)
    bench.runner.commit(len(bench.journal))
    assert bench.replies == ["expired"]
    assert bench.runner.next_deadline_ms is None


def test_a_timer_whose_command_cannot_be_written_comes_back() -> None:
    bench = Bench()
    bench.submit(Wait("a", 10))
    bench.submit(Wait("b", 10))
    bench.broken = True
    with pytest.raises(OSError, match="disk full"):
        bench.wake(10)
    bench.broken = False
    bench.wake(10)  # the other one
    bench.runner.commit(len(bench.journal))
    assert bench.replies == ["expired"]
    assert bench.runner.next_deadline_ms == 10 + TIMER_RETRY_MS
    bench.wake(10 + TIMER_RETRY_MS)
    bench.runner.commit(len(bench.journal))
    assert bench.replies == ["expired", "expired"]


def test_a_timer_whose_command_is_refused_comes_back() -> None:
    bench = Bench()
    bench.submit(Wait("a", 10))

    def refuse(_: Sequence[Any]) -> int:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE)

    append, bench.runner._append = bench.runner._append, refuse
    with pytest.raises(ApiError):
        bench.wake(10)
    assert bench.runner.next_deadline_ms == 10 + TIMER_RETRY_MS
    bench.runner._append = append
    bench.wake(10 + TIMER_RETRY_MS)
    assert bench.machine.waiting == []


def test_a_timer_that_sets_itself_again_lets_others_have_their_turn() -> None:
    bench = Bench()
    bench.submit(Again(), now_ms=100)
    bench.submit(Wait("a", 100), now_ms=100)
    bench.wake(100)
    assert bench.machine.taken == 2
    assert bench.machine.waiting == []
    assert bench.runner.next_deadline_ms == 101
    bench.wake(101)
    assert bench.machine.taken == 3


CROWD = 3 * limits.ANSWERS_AT_ONCE


def crowd() -> Bench:
    """Very many who are parked."""
    bench = Bench(in_turns=True)
    for number in range(CROWD):
        reply = bench.replies.append
        bench.runner.submit(Wait(str(number), 100), Moment(0, 0), lambda value, to=reply, of=number: to((of, value)))
    bench.runner.commit(len(bench.journal))
    return bench


def test_many_answers_are_given_in_turns_and_in_their_order() -> None:
    bench = crowd()
    bench.submit(Take(1))
    bench.runner.commit(len(bench.journal))
    bench.submit("read")
    expected = [*((number, "taken") for number in range(CROWD)), 1, 1]
    for turn in range(1, 4):
        assert bench.replies == expected[: turn * limits.ANSWERS_AT_ONCE]
        bench.runner.commit(len(bench.journal))  # who says so again in the same turn hastens nothing
        assert len(bench.turns) == 1
        bench.next_turn()
    assert bench.replies == expected
    bench.next_turn()
    assert bench.turns == []
    bench.submit("read")  # nobody waits any more: at once
    assert bench.replies == [*expected, 1]


def test_many_are_told_in_turns_that_the_runner_resigns() -> None:
    bench = crowd()
    bench.submit(Take(1))
    bench.runner.commit(len(bench.journal))
    bench.submit(Wait("last", 100))
    bench.runner.resign(ApiError(ErrorCode.NOT_COORDINATOR))
    assert len(bench.replies) == 2 * limits.ANSWERS_AT_ONCE
    while bench.turns:
        bench.next_turn()
    assert bench.replies[:CROWD] == [(number, "taken") for number in range(CROWD)], "what was ready before"
    assert bench.replies[CROWD] == 1
    assert [reply.code for reply in bench.replies[CROWD + 1 :]] == [ErrorCode.NOT_COORDINATOR]


def test_many_are_told_in_turns_that_they_waited_too_long() -> None:
    bench = Bench(in_turns=True)
    for _ in range(CROWD):
        bench.submit(Take(1), now_ms=1_000)
    bench.submit(Take(1), now_ms=2_000)
    bench.runner.give_up(1_000, ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert len(bench.replies) == limits.ANSWERS_AT_ONCE
    assert bench.runner.waits_since_ms == 2_000
    while bench.turns:
        bench.next_turn()
    assert [reply.code for reply in bench.replies] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * CROWD


def test_many_timers_that_are_due_at_once_are_run_in_turns() -> None:
    bench = crowd()
    bench.wake(100)
    assert len(bench.machine.waiting) == CROWD - limits.TIMERS_AT_ONCE
    assert bench.runner.next_deadline_ms == 100, "due at once"
    while bench.runner.next_deadline_ms is not None:
        bench.wake(100)
    assert bench.journal[CROWD:] == [("done", str(number)) for number in range(CROWD)]


def test_who_is_given_something_may_ask_for_more() -> None:
    """Any number of times, one after the other."""
    bench = Bench()
    left = 2 * sys.getrecursionlimit()

    def again(value: Any) -> None:
        nonlocal left
        bench.replies.append(value)
        left -= 1
        if left:
            bench.runner.submit(Take(1), Moment(0, 0), again)
            bench.runner.commit(len(bench.journal))

    again(0)
    assert bench.replies == list(range(2 * sys.getrecursionlimit()))
