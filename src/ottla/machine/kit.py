"""The shape of every durable piece of control state: cluster, groups, transactions, shares, schemas, connectors.

A machine has two halves that never mix:

- `decide(command, now_ms)` reads the state and says what should happen. It changes nothing.
- `apply(record)` is the only mutator. It is also the whole of recovery: reading the journal from the start and applying
  every record gives the state back, so whatever is not in a record does not exist.

What should happen is a `Result`: records to append, the reply, timers, and replies to commands that were parked before.
A reply tells the client that its records are committed, so it leaves only when they are (see `machine/runner.py`).
A command that cannot be answered yet replies `Parked(token)`; a later Result answers it with `Answer(token, value)`.
Timers re-enter as commands, which keeps time out of `apply`: replaying a journal never depends on when it is replayed.

Some state is not worth a record, because losing it with the process loses nothing that was promised: when a member was
last heard of, who has joined the rebalance that is under way. It changes by `notes`, which `note` applies like records,
after them, but which nobody writes down. What must happen outside (markers to write, topics to create) is an effect:
it is carried out once the records are committed, and what came of it re-enters as a command.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.model.limits import CLOCK_STEP_MS

RecordT = TypeVar("RecordT")
CommandT_contra = TypeVar("CommandT_contra", contravariant=True)


class Parked(NamedTuple):
    """In place of a reply: the answer comes later, under this token."""

    token: Hashable


class Answer(NamedTuple):
    """The reply to a command that was parked under `token`."""

    token: Hashable
    value: Any


class Moment(NamedTuple):
    """Now, by two clocks. The time of day may be set, forward and back; the other one only measures how long something
    takes. What is written down bears the first, what is waited for follows the second."""

    now_ms: int
    steady_ms: int


class ClockSteps:
    """Notices that the time of day was set. What it drifts by counts as set once it amounts to `CLOCK_STEP_MS`."""

    __slots__ = ("_ahead_ms",)

    def __init__(self, now: Moment) -> None:
        self._ahead_ms = now.now_ms - now.steady_ms

    def since(self, now: Moment) -> int:
        """By how much it was set since the last call, forward or (below 0) back."""
        by_ms = now.now_ms - now.steady_ms - self._ahead_ms
        if abs(by_ms) < CLOCK_STEP_MS:
            return 0
        self._ahead_ms += by_ms
        return by_ms


class ClockSet(NamedTuple):
    """A note that every machine is given: the time of day was set by so much. What it compares with times that were
    written down before is too old by that, or (if negative) too young."""

    by_ms: int


class Timer(NamedTuple):
    """At `deadline_ms`, `command` re-enters `decide`. A timer replaces an earlier one of the same key; None cancels.

    The deadline is given by the time of day of the decision, and means so long from then on, wherever that is set to.
    """

    key: Hashable
    deadline_ms: int | None
    command: Any = None


class Result(NamedTuple, Generic[RecordT]):
    """What a command leads to. `records` are appended all together or not at all."""

    records: Sequence[RecordT] = ()
    reply: Any = None
    timers: Sequence[Timer] = ()
    answers: Sequence[Answer] = ()
    notes: Sequence[Any] = ()
    effects: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The first commands after a journal was replayed: set the timers, go on with what was left half done.

    One is about the groups (or transactions, ...) from the first to before the last, in their order; None: to the end.
    """

    first: int = 0
    last: int | None = None


class Machine(Protocol[CommandT_contra, RecordT]):
    """State that is decided upon and applied to."""

    def decide(self, command: CommandT_contra, now_ms: int) -> Result[RecordT]:
        """Say what `command` leads to, without changing anything. Raises ApiError to refuse it as a whole."""
        ...

    def apply(self, record: RecordT) -> Sequence[Any]:
        """Change the state; return what changed, for observers."""
        ...

    def apply_all(self, records: Sequence[RecordT]) -> Sequence[Any]:
        """`apply` for one after the other."""
        ...

    def note(self, note: Any) -> None:
        """Change state that no record holds."""
        ...


class Journaled(Machine[CommandT_contra, RecordT], Protocol[CommandT_contra, RecordT]):
    """A machine that is made from a journal, which may be long."""

    def beginning(self) -> Iterator[Loaded]:
        """The commands it begins with, each of some milliseconds; nothing else is asked of it before their end."""
        ...


class OneByOne:
    """For machines that gain nothing from being handed many records at once."""

    def apply_all(self: Machine[Any, RecordT], records: Sequence[RecordT]) -> Sequence[Any]:
        return [change for record in records for change in self.apply(record)]
