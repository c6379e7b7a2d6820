"""What runners and journals rely on is asserted: a bug stops the runner instead of spoiling the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.machine.keyed import Entry, batch_of
from ottla.machine.kit import Answer, Moment, Result
from ottla.machine.runner import Runner
from ottla.machine.stepped import SteppedRunner, Steps, in_one_go
from ottla.model.ids import ProducerId
from ottla.wire.journal.consumer_offsets import OffsetCommitKey

NOW = Moment(0, 0)


class Scripted:
    """A machine whose commands are the Results that they lead to; it fails to apply the record "bad"."""

    def decide(self, command: Result[str, Any], now_ms: int) -> Result[str, Any]:
        return command

    def deciding(self, command: Result[str, Any], now_ms: int) -> Steps[Result[str, Any]]:
        yield
        return command

    def apply(self, record: str) -> Sequence[Any]:
        if record == "bad":
            raise ValueError(record)
        return [record]

    def apply_all(self, records: Sequence[str]) -> Sequence[Any]:
        return [change for record in records for change in self.apply(record)]

    def applying(self, records: Sequence[str]) -> Steps[list[Any]]:
        yield
        return list(self.apply_all(records))

    def note(self, note: Any) -> None:
        """Nothing to do."""


def ignore(_: Any) -> None:
    """Nobody waits."""


def test_a_runner_that_failed_to_apply_decides_nothing_more() -> None:
    runner: Runner[Any, str, Any] = Runner(Scripted(), len, ignore)
    with pytest.raises(ValueError, match="bad"):
        runner.submit(Result(["bad"]), NOW, ignore)
    assert runner.broken
    with pytest.raises(AssertionError, match="must be discarded"):
        runner.submit(Result(["good"]), NOW, ignore)


def test_nothing_is_committed_behind_the_end_of_the_journal() -> None:
    with pytest.raises(AssertionError, match="5 is committed, the journal ends at 4"):
        Runner(Scripted(), len, next_offset=4, committed_offset=5)


def test_an_answer_needs_a_command_that_waits_for_it() -> None:
    runner: Runner[Any, str, Any] = Runner(Scripted(), len, ignore)
    with pytest.raises(AssertionError, match="no command waits"):
        runner.submit(Result(answers=[Answer("nobody", 1)]), NOW, ignore)
    assert runner.broken


def test_the_steps_of_two_commands_do_not_mix() -> None:
    runner: SteppedRunner[Any, str, Any] = SteppedRunner(Scripted(), len, ignore)
    first = runner.submitting(Result(["a"]), NOW, ignore)
    next(first)
    with pytest.raises(AssertionError, match="began before"):
        next(runner.submitting(Result(["b"]), NOW, ignore))
    in_one_go(first)
    in_one_go(runner.submitting(Result(["b"]), NOW, ignore))


def test_a_command_whose_steps_are_dropped_makes_room_for_the_next() -> None:
    runner: SteppedRunner[Any, str, Any] = SteppedRunner(Scripted(), len, ignore)
    first = runner.submitting(Result(["a"]), NOW, ignore)
    next(first)
    first.close()
    in_one_go(runner.submitting(Result(["b"]), NOW, ignore))


def test_a_batch_holds_entries_of_one_transaction() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    with pytest.raises(AssertionError, match="one transaction"):
        batch_of([Entry(key, None), Entry(key, None, producer_id=ProducerId(7))], now_ms=0)
