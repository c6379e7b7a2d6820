"""The interface of every replicated state machine: cluster, groups, transactions, shares, schemas, connectors.

A machine has two halves that never mix:

- `decide(command, now_ms)` reads the state and says what should happen. It changes nothing.
- `apply(record)` is the only mutator. It is also the whole of recovery: reading the journal from the start and applying
  every record gives the state back. State that is in no record does not survive a restart.

The outcome of a decision is a `Result`: records to append, the reply, timers, and replies to commands that were parked
before. A reply tells the client that the records of its command are committed, so the reply leaves only after the
commit (see `machine/runner.py`). A command that cannot be answered yet replies `Parked(token)`; a later Result answers
it with `Answer(token, value)`. A timer that is due submits a command, which keeps time out of `apply`: replaying a
journal never depends on when it is replayed.

Some state is not worth a record, because losing it with the process breaks no promise: when a member was last heard of,
which members have joined the current rebalance. Such state changes by `notes`: `note` applies them like records, after
the records, but they are never written. Work outside of the machine (writing markers, creating topics) is an effect: it
is carried out once the records are committed, and its outcome is submitted as a command.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Never, Protocol, TypeVar

from ottla.model.errors import ApiError
from ottla.model.limits import CLOCK_STEP_MS

RecordT = TypeVar("RecordT")
ChangeT = TypeVar("ChangeT")
CommandT_contra = TypeVar("CommandT_contra", contravariant=True)
ViewT_contra = TypeVar("ViewT_contra", contravariant=True)
RecordT_co = TypeVar("RecordT_co", covariant=True)
ReplyT_co = TypeVar("ReplyT_co", covariant=True)
ChangeT_co = TypeVar("ChangeT_co", covariant=True)


class Parked(NamedTuple):
    """In place of a reply: the command will be answered later, by an `Answer` with this token."""

    token: Hashable


class Answer(NamedTuple):
    """The reply to a command that was parked under `token`."""

    token: Hashable
    value: object


class Moment(NamedTuple):
    """The present time by two clocks.

    `now_ms` is the time of day, which may be set forward and back; it is used for times that are written down.
    `steady_ms` only measures intervals; it is used for deadlines.
    """

    now_ms: int
    steady_ms: int


class ClockSteps:
    """Notices when the time of day was set. A drift counts as such a step once it amounts to `CLOCK_STEP_MS`."""

    __slots__ = ("_ahead_ms",)

    def __init__(self, now: Moment) -> None:
        self._ahead_ms = now.now_ms - now.steady_ms

    def since(self, now: Moment) -> int:
        """Return by how much the time of day was set since the last call: above 0 forward, below 0 back."""
        by_ms = now.now_ms - now.steady_ms - self._ahead_ms
        if abs(by_ms) < CLOCK_STEP_MS:
            return 0
        self._ahead_ms += by_ms
        return by_ms


class ClockSet(NamedTuple):
    """A note that every machine is given when the time of day was set, forward or (if negative) back, by `by_ms`.

    Times that the machine noted before then seem older by that much, or (if negative) younger.
    """

    by_ms: int


class Timer(NamedTuple):
    """Submit `command` to `decide` at `deadline_ms`. A timer replaces an earlier one of the same key; None cancels it.

    The deadline is given by the time of day of the decision. It stands for an interval from then on: setting the time
    of day later does not move the timer.
    """

    key: Hashable
    deadline_ms: int | None
    command: Any = None  # a command to the same machine


class Result(NamedTuple, Generic[RecordT_co, ReplyT_co]):
    """The outcome of a command. `records` are appended all together or not at all; the reply is an ApiError if the
    command is refused although something has to be written.
    """

    records: Sequence[RecordT_co] = ()
    reply: ReplyT_co | ApiError | Parked | None = None
    timers: Sequence[Timer] = ()
    answers: Sequence[Answer] = ()
    notes: Sequence[object] = ()
    effects: Sequence[object] = ()


class Command(Protocol[ViewT_contra, RecordT_co, ReplyT_co]):
    """A command to a machine whose state is read through a view; the type of its reply is the one of its Result."""

    def decide(self, view: ViewT_contra, now_ms: int) -> Result[RecordT_co, ReplyT_co]: ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """A command that follows the replay of a journal: set the timers, and go on with work that was left half done.

    It covers the groups (or transactions, ...) with the numbers from `first` to before `last`, in their order; `last`
    None means to the end.
    """

    first: int = 0
    last: int | None = None


class Machine(Protocol[CommandT_contra, RecordT, ChangeT_co]):
    """A replicated state machine: `decide` reads its state, `apply` changes it."""

    def decide(self, command: CommandT_contra, now_ms: int) -> Result[RecordT, object]:
        """Return the outcome of `command` without changing anything. Raises ApiError to refuse the whole command."""
        ...

    def apply(self, record: RecordT) -> Sequence[ChangeT_co]:
        """Change the state; return the changes, for observers."""
        ...

    def apply_all(self, records: Sequence[RecordT]) -> Sequence[ChangeT_co]:
        """Apply all records, one after the other."""
        ...

    def note(self, note: object) -> None:
        """Change state that is not stored in records."""
        ...


class Journaled(Machine[CommandT_contra, RecordT, ChangeT_co], Protocol[CommandT_contra, RecordT, ChangeT_co]):
    """A machine that is rebuilt from a journal, which may be long."""

    def beginning(self) -> Iterator[Loaded]:
        """The commands to run first after the replay, each of some milliseconds.

        No other command may run before their end.
        """
        ...


class OneByOne:
    """`apply_all` for machines that gain nothing from being handed many records at once."""

    def apply_all(self: Machine[Never, RecordT, ChangeT], records: Sequence[RecordT]) -> Sequence[ChangeT]:
        return [change for record in records for change in self.apply(record)]
