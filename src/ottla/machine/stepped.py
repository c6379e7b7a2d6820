"""A machine and its runner whose commands may be long: decided, applied and carried out in steps.

`decide` may answer with a generator whose result is the `Result`: where it yields, others may have their turn. Whoever
runs the steps lets no other command in between, so that the state a command is decided on stays what it was. Nothing
has happened before the records are appended, which is one step; after that the rest is only a matter of time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from ottla.machine.kit import Machine, Moment, Result
from ottla.machine.runner import Reply, Runner
from ottla.model.errors import ApiError

T = TypeVar("T")
CommandT = TypeVar("CommandT")
CommandT_contra = TypeVar("CommandT_contra", contravariant=True)
RecordT = TypeVar("RecordT")

Steps: TypeAlias = Generator[None, None, T]


class SteppedMachine(Machine[CommandT_contra, RecordT], Protocol[CommandT_contra, RecordT]):
    def deciding(self, command: CommandT_contra, now_ms: int) -> Steps[Result[RecordT]]:
        """`decide`, with records that can be appended at once."""
        ...

    def applying(self, records: Sequence[RecordT]) -> Steps[list[Any]]:
        """`apply_all`."""
        ...


class SteppedRunner(Runner[CommandT, RecordT]):
    """One command at a time: the steps of one end before those of the next begin."""

    machine: SteppedMachine[CommandT, RecordT]

    def submitting(self, command: CommandT, now: Moment, reply: Reply) -> Steps[None]:
        self._follow_clock(now)
        try:
            result = yield from self._deciding(command)
        except ApiError as error:
            self._hold(reply, error)
            return
        yield from self._carrying_out(result)
        self._reply(result, reply)

    def waking(self, now: Moment) -> Steps[None]:
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

    def _deciding(self, command: CommandT) -> Steps[Result[RecordT]]:
        result = yield from self.machine.deciding(command, self._now.now_ms)
        if result.records:
            self.next_offset = self._append(result.records)
        return result

    def _carrying_out(self, result: Result[RecordT]) -> Steps[None]:
        try:
            changes = (yield from self.machine.applying(result.records)) if result.records else ()
            self._changed(changes, result)
        except Exception:
            self.broken = True
            raise


def collected(items: Iterable[T], per_step: int) -> Steps[list[T]]:
    """All of the items, so many in each step."""
    found: list[T] = []
    for item in items:
        found.append(item)
        if len(found) % per_step == 0:
            yield
    return found


def in_one_go(steps: Steps[T]) -> T:
    """The result of steps that are taken without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def finished(steps: Steps[T] | T) -> T:
    """The result, now: of steps, or itself."""
    return in_one_go(steps) if isinstance(steps, Generator) else steps
