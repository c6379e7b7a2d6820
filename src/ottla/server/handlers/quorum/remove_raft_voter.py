"""RemoveRaftVoter (key 81): remove a voter from the metadata quorum. See `raft.membership`."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


@handles(RemoveRaftVoterRequest, on="both", forwarded=True)
def remove_raft_voter(request: RemoveRaftVoterRequest, context: Context) -> Answer[RemoveRaftVoterResponse]:
    return context.member.quorum.ask(request)
