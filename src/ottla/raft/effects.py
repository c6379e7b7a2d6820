"""What a RaftNode wants done, in this order."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from ottla.raft.journal import OffsetAndEpoch
from ottla.raft.voters import QuorumEndpoint
from ottla.wire.message import Request, Response


class Send(NamedTuple):
    """A request to another node; its end is told as `Answered` or `Unanswered` with this number. `node_id` is -1 for a
    bootstrap server, whose id nobody knows."""

    number: int
    node_id: int
    address: QuorumEndpoint
    request: Request
    timeout_ms: int


class Reply(NamedTuple):
    token: Any
    response: Response


class Flush(NamedTuple):
    """Make everything in the journal durable, then say `Flushed`. Several asked for during one are one."""


class Committed(NamedTuple):
    """Everything below is committed."""

    high_watermark: int


class Lead(NamedTuple):
    """This node leads, and everything up to the beginning of its epoch was committed and told."""

    epoch: int


class Follow(NamedTuple):
    """Another leads, or nobody (-1), or this node is elected but not yet ready: what it decided before may be lost."""

    leader_id: int
    epoch: int


class LoadSnapshot(NamedTuple):
    """The journal begins anew with this snapshot: so must the state."""

    snapshot: OffsetAndEpoch


class DoubtChanged(NamedTuple):
    """This voter does not vote, and there is no leader: its disk was empty when it came, and the unheard ones did not
    say that theirs are. Or that is over."""

    is_over: bool
    unheard: tuple[int, ...] = ()


Effect: TypeAlias = Send | Reply | Flush | Committed | Lead | Follow | LoadSnapshot | DoubtChanged
