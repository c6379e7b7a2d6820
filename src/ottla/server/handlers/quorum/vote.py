"""Vote (key 52): another controller asks for the vote of this one. See `raft.election`."""

from __future__ import annotations

from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse


@handles(VoteRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller")
def vote(request: VoteRequest, context: Context) -> Answer[VoteResponse]:
    return context.member.quorum.ask(request)
