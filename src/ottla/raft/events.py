"""What can happen to a RaftNode: the only ways into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from ottla.wire.message import Request, Response


@dataclass(frozen=True, slots=True)
class Start:
    """The first event: time begins."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: `RaftNode.deadline_ms` is reached."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of another node or of a tool; its `Reply` carries the same token."""

    token: Any
    request: Request


@dataclass(frozen=True, slots=True)
class Abandoned:
    """Nobody waits for the `Reply` to this token any more."""

    token: Any


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to `Send` number `number`."""

    number: int
    response: Response


@dataclass(frozen=True, slots=True)
class Unanswered:
    """There will be no answer to `Send` number `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The connection to a node broke, and it refuses new ones: its process is gone."""

    node_id: int


@dataclass(frozen=True, slots=True)
class Appended:
    """The leader's state machine appended records of the current epoch to the journal."""


@dataclass(frozen=True, slots=True)
class Flushed:
    """The journal's `flushed_offset` moved: a `Flush` is done."""


@dataclass(frozen=True, slots=True)
class JournalFailed:
    """The disk refused a write or a flush; whoever leads should be somebody else."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The node is about to stop: a leader says so, that another may follow at once."""


Event: TypeAlias = (
    Start | Tick | Asked | Abandoned | Answered | Unanswered | Unreachable | Appended | Flushed | JournalFailed | Stop
)
