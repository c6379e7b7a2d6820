"""DescribeGroups (key 15): state, members and assignments of classic groups.

v3 authorized_operations   v4 group_instance_id   v6 GROUP_ID_NOT_FOUND instead of a dead group (KIP-1043)
"""

from __future__ import annotations

from ottla.groups.classic.describe import DescribeGroup
from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.authorized_operations import GROUP_OPERATIONS, NOT_ASKED
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import TOLD_OF_GROUPS, CheckedItems, Needs, on_group
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer, Later, gather
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

Described = DescribeGroupsResponse.DescribedGroup
Member = Described.DescribedGroupMember

_NOT_FOUND_SINCE = DescribeGroupsResponse.DescribedGroup.since("error_message")
_DEAD = "Dead"


@handles(
    DescribeGroupsRequest,
    needs=Needs(
        items=CheckedItems(on_group(AclOperation.DESCRIBE, ""), "groups", "groups:group_id", order="first"),
        operations=TOLD_OF_GROUPS,
    ),
    portions=Portions("groups", "groups", limits.GROUPS_PER_SLICE),
)
def describe_groups(request: DescribeGroupsRequest, context: Context) -> Answer[DescribeGroupsResponse]:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    groups = gather([_describe(name, operations, context) for name in request.groups])
    return groups.map(lambda found: DescribeGroupsResponse(groups=found)).soonest()


def _describe(group_id: str, operations: int, context: Context) -> Later[Described]:
    version = context.request_version

    def described(value: ClassicGroup | ApiError) -> Described:
        if isinstance(value, ApiError):
            return _without_group(group_id, value, operations, version)
        protocol = (value.protocol or "") if value.state is ClassicState.STABLE else ""
        return Described(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=value.state_name,
            protocol_type=value.protocol_type,
            protocol_data=protocol,
            members=[_member(member, protocol, value.state) for member in value.members.values()],
            authorized_operations=operations,
        )

    return context.groups.submit(group_id, DescribeGroup(group_id)).map(described)


def _without_group(group_id: str, error: ApiError, operations: int, version: int) -> Described:
    dead = error.code == ErrorCode.GROUP_ID_NOT_FOUND
    return Described(
        error_code=ErrorCode.NONE if dead and version < _NOT_FOUND_SINCE else error.code,
        error_message=error.message,
        group_id=group_id,
        group_state=_DEAD if dead else "",
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=operations,
    )


def _member(member: ClassicMember, protocol: str, state: ClassicState) -> Member:
    """Return a member. Its metadata is shown only while the group is stable; its assignment until it gets
    another one.
    """
    stable = state is ClassicState.STABLE
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol) if stable else b"",
        member_assignment=member.assignment,
    )
