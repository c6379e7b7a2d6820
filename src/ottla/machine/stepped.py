"""A machine and its runner for commands that may take long: they are decided, applied and carried out in steps.

`deciding` is a generator whose result is the `Result`: where it yields, other work may have a turn. The caller that
runs the steps lets no other command in between, so that the state stays the same while a command is decided. Nothing
has changed before the records are appended, which is one step; after that the remaining steps only take time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias, TypeVar

from ottla.machine.kit import Machine, Moment, Result
from ottla.machine.runner import Reply, Runner
from ottla.model.errors import ApiError

T = TypeVar("T")
CommandT = TypeVar("CommandT")
CommandT_contra = TypeVar("CommandT_contra", contravariant=True)
RecordT = TypeVar("RecordT")
ChangeT = TypeVar("ChangeT")
ChangeT_co = TypeVar("ChangeT_co", covariant=True)

Steps: TypeAlias = Generator[None, None, T]


class SteppedMachine(Machine[CommandT_contra, RecordT, ChangeT_co], Protocol[CommandT_contra, RecordT, ChangeT_co]):
    def deciding(self, command: CommandT_contra, now_ms: int) -> Steps[Result[RecordT, object]]:
        """Like `decide`, in steps; the records of the result must fit into one append."""
        ...

    def applying(self, records: Sequence[RecordT]) -> Steps[Sequence[ChangeT_co]]:
        """Like `apply_all`, in steps."""
        ...


class SteppedRunner(Runner[CommandT, RecordT, ChangeT]):
    """Runs one command at a time: all steps of a command end before those of the next begin."""

    machine: SteppedMachine[CommandT, RecordT, ChangeT]
    _is_busy = False  # whether a command is between two of its steps

    def submitting(self, command: CommandT, now: Moment, reply: Reply) -> Steps[None]:
        with self._alone():
            self._follow_clock(now)
            try:
                result = yield from self._deciding(command)
            except ApiError as error:
                self._hold(reply, error)
                return
            yield from self._carrying_out(result)
            self._reply(result, reply)

    def waking(self, now: Moment) -> Steps[None]:
        with self._alone():
            self._follow_clock(now)
            self._not_before_ms = now.steady_ms + 1
            try:
                while (due := self._take_due(now.steady_ms)) is not None:
                    key, command = due
                    try:
                        result = yield from self._deciding(command)
                        yield from self._carrying_out(result)
                    except Exception:
                        self._put_off(key, now.steady_ms, command)
                        raise
            finally:
                self._not_before_ms = 0

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Assert that no other command is between two of its steps: both would rely on the same state."""
        assert not self._is_busy, "a command began before the steps of another one had ended"
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def _deciding(self, command: CommandT) -> Steps[Result[RecordT, object]]:
        self._check_whole()
        result = yield from self.machine.deciding(command, self._now.now_ms)
        if result.records:
            self.next_offset = self._append(result.records)
        return result

    def _carrying_out(self, result: Result[RecordT, object]) -> Steps[None]:
        try:
            changes = (yield from self.machine.applying(result.records)) if result.records else ()
            self._changed(changes, result)
        except Exception:
            self.broken = True
            raise


def collected(items: Iterable[T], per_step: int) -> Steps[list[T]]:
    """Return all of the items as a list, taking `per_step` of them in each step."""
    found: list[T] = []
    for item in items:
        found.append(item)
        if len(found) % per_step == 0:
            yield
    return found


def in_one_go(steps: Steps[T]) -> T:
    """Run all steps without a pause and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def finished(steps: Steps[T] | T) -> T:
    """Return the result of the steps, run without a pause, or the value itself if it is no generator."""
    return in_one_go(steps) if isinstance(steps, Generator) else steps
