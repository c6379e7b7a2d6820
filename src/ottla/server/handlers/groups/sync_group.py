"""SyncGroup (key 14): a member of a classic group asks for its assignment; the leader sends those of all members.

v5 protocol type and name, which are required
"""

from __future__ import annotations

from ottla.groups.classic.sync import AssignmentRefused, Sync
from ottla.groups.classic.turn import SyncReply
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_WITH_PROTOCOL = SyncGroupRequest.since("protocol_type")


@handles(SyncGroupRequest, needs=Needs((on_group(AclOperation.READ),)))
def sync_group(request: SyncGroupRequest, context: Context) -> Answer[SyncGroupResponse]:
    is_protocol_known = request.protocol_type is not None and request.protocol_name is not None
    if context.request_version >= _FIRST_VERSION_WITH_PROTOCOL and not is_protocol_known:
        return _response(SyncReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if not request.group_id:
        return _response(SyncReply(ErrorCode.INVALID_GROUP_ID))
    command = Sync(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
    )

    def refused(error: ApiError) -> SyncGroupResponse:
        if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:  # the assignment is too large, say
            context.groups.submit(command.group_id, AssignmentRefused(command.group_id, command.generation))
        return _response(SyncReply(error.code))

    return context.groups.ask(request.group_id, command, _response, refused)


def _response(reply: SyncReply) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=reply.error,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
