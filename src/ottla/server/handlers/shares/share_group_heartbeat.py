"""ShareGroupHeartbeat (key 76): a member of a share group joins, stays or leaves, and gets its assignment."""

from __future__ import annotations

from ottla.groups.assign.spec import Partitions
from ottla.groups.modern.group import JOIN_EPOCH, LEAVE_EPOCH
from ottla.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group, on_topic
from ottla.server.loop.later import Answer
from ottla.wire.messages.shares.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)

Assignment = ShareGroupHeartbeatResponse.Assignment


@handles(
    ShareGroupHeartbeatRequest,
    needs=Needs((on_group(AclOperation.READ), on_topic(AclOperation.DESCRIBE, "subscribed_topic_names"))),
)
def share_group_heartbeat(request: ShareGroupHeartbeatRequest, context: Context) -> Answer[ShareGroupHeartbeatResponse]:
    try:
        context.shares.require_enabled()
        _check(request)
    except ApiError as error:
        return _refused(error)
    topics = request.subscribed_topic_names
    command = ShareHeartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        request.rack_id,
        frozenset(topics) if topics is not None else None,
        context.client_id,
        f"/{context.connection.remote_address[0]}",
    )
    return context.groups.ask(request.group_id, command, _response, _refused)


def _check(request: ShareGroupHeartbeatRequest) -> None:
    if not 0 < len(request.member_id) <= limits.SHARE_MEMBER_ID_CHARS_MAX:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    if request.rack_id == "":
        raise ApiError(ErrorCode.INVALID_REQUEST, "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise ApiError(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def _response(beat: ShareHeartbeatReply) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=beat.member_id,
        member_epoch=beat.epoch,
        heartbeat_interval_ms=beat.interval_ms,
        assignment=_assignment(beat.assigned) if beat.assigned is not None else None,
    )


def _assignment(assigned: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(assigned[topic_id])) for topic_id in sorted(assigned)
        ]
    )


def _refused(error: ApiError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        error_code=error.code, error_message=error.text, member_epoch=0, heartbeat_interval_ms=0
    )
