"""UpdateRaftVoter (key 82): a voter reports its current endpoints. See `raft.membership`."""

from __future__ import annotations

from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


@handles(UpdateRaftVoterRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller")
def update_raft_voter(request: UpdateRaftVoterRequest, context: Context) -> Answer[UpdateRaftVoterResponse]:
    return context.member.quorum.ask(request)
