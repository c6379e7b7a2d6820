"""Vote (key 52): another controller asks for the vote of this one. See `raft.election`."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse


@handles(VoteRequest, on="controller")
def vote(request: VoteRequest, context: Context) -> Answer[VoteResponse]:
    return context.member.quorum.ask(request)
