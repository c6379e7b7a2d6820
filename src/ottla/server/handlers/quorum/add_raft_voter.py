"""AddRaftVoter (key 80): add a voter to the metadata quorum. See `raft.membership`."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


@handles(AddRaftVoterRequest, on="both", forwarded=True)
def add_raft_voter(request: AddRaftVoterRequest, context: Context) -> Answer[AddRaftVoterResponse]:
    return context.member.quorum.ask(request)
