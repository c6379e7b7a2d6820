"""LeaveGroup (key 13): members leave a classic group at once instead of timing out.

up to v2 one member, whose error is that of the whole answer   v3 many, by member id or by instance id
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.classic.arguments import Leaver
from ottla.groups.classic.leave import ClassicLeave
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse

_FIRST_VERSION_OF_MANY = LeaveGroupRequest.since("members")


@handles(
    LeaveGroupRequest,
    needs=Needs((on_group(AclOperation.READ),)),
    portions=Portions("members", "members", limits.LEAVERS_PER_SLICE),
)
def leave_group(request: LeaveGroupRequest, context: Context) -> Answer[LeaveGroupResponse]:
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    is_many = context.request_version >= _FIRST_VERSION_OF_MANY
    leavers = (
        tuple(Leaver(each.member_id, each.group_instance_id, each.reason or "") for each in request.members)
        if is_many
        else (Leaver(request.member_id, None),)
    )

    def respond(outcomes: Sequence[ErrorCode]) -> LeaveGroupResponse:
        if not is_many:
            return LeaveGroupResponse(error_code=outcomes[0])
        return LeaveGroupResponse(error_code=ErrorCode.NONE, members=_members(leavers, outcomes))

    def refuse(error: ApiError) -> LeaveGroupResponse:
        if error.code is ErrorCode.UNKNOWN_MEMBER_ID:  # no such group, hence no such members
            return respond([error.code] * len(leavers))
        return LeaveGroupResponse(error_code=error.code)

    return context.groups.ask(request.group_id, ClassicLeave(request.group_id, leavers), respond, refuse)


def _members(leavers: Sequence[Leaver], outcomes: Sequence[ErrorCode]) -> list[LeaveGroupResponse.MemberResponse]:
    return [
        LeaveGroupResponse.MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
        for (member_id, instance_id, _), error in zip(leavers, outcomes, strict=True)
    ]
