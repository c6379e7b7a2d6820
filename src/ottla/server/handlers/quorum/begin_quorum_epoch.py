"""BeginQuorumEpoch (key 53): a leader of the quorum announces itself. See `raft.following`."""

from __future__ import annotations

from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


@handles(BeginQuorumEpochRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller")
def begin_quorum_epoch(request: BeginQuorumEpochRequest, context: Context) -> Answer[BeginQuorumEpochResponse]:
    return context.member.quorum.ask(request)
