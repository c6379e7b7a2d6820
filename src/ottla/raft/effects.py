"""The effects of a RaftNode's steps, to be carried out in the order given."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.model.ids import LeaderEpoch
from ottla.raft.journal import OffsetAndEpoch
from ottla.raft.voters import QuorumEndpoint
from ottla.wire.message import Request, Response


class Send(NamedTuple):
    """Send a request to another node; report its end as `Answered` or `Unanswered` with this number.

    `node_id` is -1 for a bootstrap server, whose id is unknown.
    """

    number: int
    node_id: int
    address: QuorumEndpoint
    request: Request[Response]
    timeout_ms: int


class Reply(NamedTuple):
    token: object
    response: Response


class Flush(NamedTuple):
    """Make everything in the journal durable, then report `Flushed`. One flush serves all requests before it."""


class Committed(NamedTuple):
    """Everything below `high_watermark` is committed."""

    high_watermark: int


class Lead(NamedTuple):
    """This node leads, and everything up to the beginning of its epoch is committed and was reported as `Committed`."""

    epoch: LeaderEpoch


class Follow(NamedTuple):
    """Another node leads, or no node (-1), or this node is elected but not yet ready.

    Uncommitted decisions of this node may be lost.
    """

    leader_id: int
    epoch: LeaderEpoch


class LoadSnapshot(NamedTuple):
    """The journal begins anew with this snapshot; the state machine must load it."""

    snapshot: OffsetAndEpoch


class DoubtChanged(NamedTuple):
    """This voter is in doubt about its own past (see `lost_disk`) and there is no leader; or the doubt is over.

    While in doubt it does not vote: its disk was empty when it started, and the voters `unheard` have not said that
    theirs are.
    """

    is_over: bool
    unheard: tuple[int, ...] = ()


Effect: TypeAlias = Send | Reply | Flush | Committed | Lead | Follow | LoadSnapshot | DoubtChanged
