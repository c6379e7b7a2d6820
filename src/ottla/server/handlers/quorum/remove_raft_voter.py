"""RemoveRaftVoter (key 81): remove a voter from the metadata quorum. See `raft.membership`."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.model.ids import uuid_text
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def _named(request: RemoveRaftVoterRequest) -> Iterator[str]:
    yield f"voter {request.voter_id} {uuid_text(request.voter_directory_id)}"


@handles(
    RemoveRaftVoterRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), explained=True, changes=_named),
    on="both",
    forwarded=True,
)
def remove_raft_voter(request: RemoveRaftVoterRequest, context: Context) -> Answer[RemoveRaftVoterResponse]:
    return context.member.quorum.ask(request)
