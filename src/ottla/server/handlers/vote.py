"""Vote (key 52): another controller asks for this one's vote. See `raft.election`."""

from __future__ import annotations

from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.vote import VoteRequest, VoteResponse


@handles(VoteRequest, on="controller")
def vote(request: VoteRequest, context: Context) -> Answer[VoteResponse]:
    return context.services.quorum.ask(request)
