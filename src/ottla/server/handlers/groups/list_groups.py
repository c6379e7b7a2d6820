"""ListGroups (key 16): the groups that this node coordinates, of any kind.

v4 states_filter   v5 types_filter
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.groups.group import Group, GroupKind
from ottla.groups.listing import AllGroups, GroupFilter, listed
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, Seen, on_cluster, on_group
from ottla.server.loop.later import Answer, gather
from ottla.wire.messages.groups.list_groups import ListGroupsRequest, ListGroupsResponse

ListedGroup = ListGroupsResponse.ListedGroup
_KINDS = {kind.value: kind for kind in GroupKind}


@handles(
    ListGroupsRequest,
    needs=Needs(sees=(Seen(on_group(AclOperation.DESCRIBE), "groups", unless=on_cluster(AclOperation.DESCRIBE)),)),
)
def list_groups(request: ListGroupsRequest, context: Context) -> Answer[ListGroupsResponse]:
    states = frozenset(state.lower() for state in request.states_filter)
    # An unknown type matches no group, which is not the same as no filter.
    kinds = frozenset(_KINDS.get(name.lower()) for name in request.types_filter)
    wanted = GroupFilter(states or None, kinds or None)
    found = gather([host.ask(AllGroups()) for host in context.groups.coordinators.hosts()])
    return context.runtime.slices.answer_of(found, lambda replies: _listing(replies, wanted))


def _listing(replies: list[list[Group] | ApiError], wanted: GroupFilter) -> Generator[None, None, ListGroupsResponse]:
    groups: list[ListedGroup] = []
    for reply in replies:
        if isinstance(reply, ApiError):
            if reply.code != ErrorCode.NOT_COORDINATOR:
                return ListGroupsResponse(error_code=reply.code, groups=[])
            continue
        for position, group in enumerate((yield from listed(reply, wanted)), 1):
            groups.append(
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state_name,
                    group_type=group.kind.value,
                )
            )
            if position % limits.GROUPS_LISTED_PER_SLICE == 0:
                yield
    return ListGroupsResponse(error_code=ErrorCode.NONE, groups=groups)
