"""EndQuorumEpoch (key 54): the leader of the quorum resigns. See `raft.following`."""

from __future__ import annotations

from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


@handles(EndQuorumEpochRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller")
def end_quorum_epoch(request: EndQuorumEpochRequest, context: Context) -> Answer[EndQuorumEpochResponse]:
    return context.member.quorum.ask(request)
