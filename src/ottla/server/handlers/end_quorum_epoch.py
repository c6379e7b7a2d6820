"""EndQuorumEpoch (key 54): the leader of the quorum leaves. See `raft.following`."""

from __future__ import annotations

from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


@handles(EndQuorumEpochRequest, on="controller")
def end_quorum_epoch(request: EndQuorumEpochRequest, context: Context) -> Answer[EndQuorumEpochResponse]:
    return context.services.quorum.ask(request)
