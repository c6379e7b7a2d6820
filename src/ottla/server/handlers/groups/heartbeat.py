"""Heartbeat (key 12): a member of a classic group reports that it is alive; the answer tells whether it has
to rejoin.
"""

from __future__ import annotations

from ottla.groups.classic.heartbeat import ClassicHeartbeat
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse


@handles(HeartbeatRequest, needs=Needs((on_group(AclOperation.READ),)))
def heartbeat(request: HeartbeatRequest, context: Context) -> Answer[HeartbeatResponse]:
    if not request.group_id:
        return _response(ErrorCode.INVALID_GROUP_ID)
    command = ClassicHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
    )
    return context.groups.ask(request.group_id, command, _response, _refused)


def _refused(error: ApiError) -> HeartbeatResponse:
    # Sessions only start when the group is loaded, so a heartbeat before that succeeds.
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return _response(ErrorCode.NONE if is_loading else error.code)


def _response(error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)
