"""DeleteGroups (key 42): delete groups without members, with all their offsets."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.groups.offsets.remove import DeleteGroup
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group
from ottla.server.api.portions import Portions
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

Outcome = DeleteGroupsResponse.DeletableGroupResult


def _named(request: DeleteGroupsRequest) -> Iterator[str]:
    yield from request.groups_names


@handles(
    DeleteGroupsRequest,
    needs=Needs(
        items=CheckedItems(on_group(AclOperation.DELETE, ""), "groups_names", "results:group_id"), changes=_named
    ),
    portions=Portions("groups_names", "results", limits.GROUPS_PER_SLICE),
)
async def delete_groups(request: DeleteGroupsRequest, context: Context) -> DeleteGroupsResponse:
    names = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(results=[await _delete(name, context) for name in names])


async def _delete(group_id: str, context: Context) -> Outcome:
    try:
        await context.groups.share_states.delete_all(group_id)
    except ApiError as error:
        return Outcome(group_id=group_id, error_code=error.code)
    value = await context.groups.submit(group_id, DeleteGroup(group_id))
    return Outcome(group_id=group_id, error_code=value.code if isinstance(value, ApiError) else ErrorCode.NONE)
