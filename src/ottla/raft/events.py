"""The events of a RaftNode: its only inputs."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.wire.message import Request, Response


class Start(NamedTuple):
    """The first event: the clock of the node starts."""


class Tick(NamedTuple):
    """Time has passed: `RaftNode.deadline_ms` is reached."""


class RequestReceived(NamedTuple):
    """A request of another node or of a tool; its `Reply` carries the same token."""

    token: object
    request: Request[Response]


class UpgradeAsked(NamedTuple):
    """The state machine wants another kraft.version; the `Reply` is an UpdateFeaturesResponse."""

    token: object
    level: int


class Abandoned(NamedTuple):
    """The sender of the request with this token does not wait for its `Reply` any more."""

    token: object


class Answered(NamedTuple):
    """The answer to `Send` number `number`."""

    number: int
    response: Response


class Unanswered(NamedTuple):
    """There will be no answer to `Send` number `number`."""

    number: int


class Unreachable(NamedTuple):
    """The connection to a node broke, and it refuses new ones: its process is gone."""

    node_id: int


class JournalGrew(NamedTuple):
    """The leader's state machine appended records of the current epoch to the journal."""


class Flushed(NamedTuple):
    """The journal's `flushed_offset` moved: a `Flush` is done."""


class JournalFailed(NamedTuple):
    """The disk refused a write or a flush; a leader resigns, so that another node leads."""


class StopAsked(NamedTuple):
    """The node is about to stop; a leader announces that, so that another node can take over at once."""


Event: TypeAlias = (
    Start
    | Tick
    | RequestReceived
    | UpgradeAsked
    | Abandoned
    | Answered
    | Unanswered
    | Unreachable
    | JournalGrew
    | Flushed
    | JournalFailed
    | StopAsked
)
