"""BeginQuorumEpoch (key 53): a leader of the quorum announces itself. See `raft.following`."""

from __future__ import annotations

from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


@handles(BeginQuorumEpochRequest, on="controller")
def begin_quorum_epoch(request: BeginQuorumEpochRequest, context: Context) -> Answer[BeginQuorumEpochResponse]:
    return context.services.quorum.ask(request)
