"""DeleteGroups (key 42): delete groups without members, with all their offsets."""

from __future__ import annotations

from ottla.groups.offsets.remove import DeleteGroup
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.answer import Answer, Later, gather
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Outcome = DeleteGroupsResponse.DeletableGroupResult


@handles(DeleteGroupsRequest)
def delete_groups(request: DeleteGroupsRequest, context: Context) -> Answer[DeleteGroupsResponse]:
    names = dict.fromkeys(request.groups_names)
    outcomes = gather([_delete(name, context) for name in names])
    return outcomes.map(lambda results: DeleteGroupsResponse(results=results)).soonest()


def _delete(group_id: str, context: Context) -> Later[Outcome]:
    def outcome(value: object) -> Outcome:
        code = value.code if isinstance(value, ApiError) else ErrorCode.NONE
        return Outcome(group_id=group_id, error_code=code)

    return context.groups.submit(group_id, DeleteGroup(group_id)).map(outcome)
