"""AddRaftVoter (key 80): add a voter to the metadata quorum. See `raft.membership`."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.model.ids import uuid_text
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def _named(request: AddRaftVoterRequest) -> Iterator[str]:
    yield f"voter {request.voter_id} {uuid_text(request.voter_directory_id)}"


@handles(
    AddRaftVoterRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), explained=True, changes=_named),
    on="both",
    forwarded=True,
)
def add_raft_voter(request: AddRaftVoterRequest, context: Context) -> Answer[AddRaftVoterResponse]:
    return context.member.quorum.ask(request)
