"""JoinGroup (key 11): join a classic group or its next generation; answered when the generation is complete.

v0 has no rebalance timeout: the session timeout is used   v4 a new member needs an id first
v9 the leader may be told not to assign
"""

from __future__ import annotations

from ottla.groups.classic.group import MemberProtocol
from ottla.groups.classic.join import Join
from ottla.groups.classic.turn import JoinReply
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.groups import GROUP_MAX_SESSION_TIMEOUT_MS, GROUP_MIN_SESSION_TIMEOUT_MS
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse

_FIRST_VERSION_WITH_REBALANCE_TIMEOUT = JoinGroupRequest.since("rebalance_timeout_ms")
# From this version on, a new member is given an id and joins again with it (KIP-394).
_FIRST_VERSION_THAT_NEEDS_AN_ID = 4
_FIRST_VERSION_WITH_PROTOCOL_TYPE = JoinGroupResponse.since("protocol_type")
_FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = JoinGroupResponse.since("skip_assignment")


@handles(
    JoinGroupRequest,
    needs=Needs((on_group(AclOperation.READ),), refused=(("generation_id", -1), ("protocol_name", None))),
)
def join_group(request: JoinGroupRequest, context: Context) -> Answer[JoinGroupResponse]:
    version = context.request_version
    shortest_ms = context.settings[GROUP_MIN_SESSION_TIMEOUT_MS]
    longest_ms = context.settings[GROUP_MAX_SESSION_TIMEOUT_MS]
    if not request.group_id:
        return _response(JoinReply(ErrorCode.INVALID_GROUP_ID, request.member_id), version)
    if not shortest_ms <= request.session_timeout_ms <= longest_ms:
        return _response(JoinReply(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id), version)
    has_rebalance_timeout = version >= _FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    command = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id,
        client_host=f"/{context.connection.remote_address[0]}",
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(MemberProtocol(each.name, bytes(each.metadata)) for each in request.protocols),
        needs_known_id=version >= _FIRST_VERSION_THAT_NEEDS_AN_ID,
        can_skip_assignment=version >= _FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
        reason=request.reason or "",
    )
    return context.groups.ask(
        request.group_id,
        command,
        lambda reply: _response(reply, version),
        lambda error: _refused(error, version),
    )


def _refused(error: ApiError, version: int) -> JoinGroupResponse:
    return _response(JoinReply(error.code), version)


def _response(reply: JoinReply, version: int) -> JoinGroupResponse:
    name = reply.protocol_name
    if name is None and version < _FIRST_VERSION_WITH_PROTOCOL_TYPE:
        name = ""
    return JoinGroupResponse(
        error_code=reply.error,
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=name,
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponse.Member(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in reply.members
        ],
    )
