"""ConsumerGroupHeartbeat (key 68): a member of a consumer group (KIP-848) joins, stays or leaves, and gets its
assignment.

v1 regular expressions; the member chooses its own id (KIP-1082)
"""

from __future__ import annotations

from functools import partial

from ottla.groups.consumer.checks import check_heartbeat
from ottla.groups.consumer.draft import assignor_names
from ottla.groups.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatReply
from ottla.groups.consumer.leave import ConsumerLeave
from ottla.groups.modern.group import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from ottla.model.errors import ApiError
from ottla.model.settings.groups import GROUP_CONSUMER_ASSIGNORS
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group, on_topic
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

Request = ConsumerGroupHeartbeatRequest
Response = ConsumerGroupHeartbeatResponse


@handles(
    ConsumerGroupHeartbeatRequest,
    needs=Needs((on_group(AclOperation.READ), on_topic(AclOperation.DESCRIBE, "subscribed_topic_names"))),
)
def consumer_group_heartbeat(request: Request, context: Context) -> Answer[Response]:
    heartbeat = _heartbeat(request, context)
    try:
        context.groups.require_consumer_protocol()
        assignors = assignor_names(context.settings[GROUP_CONSUMER_ASSIGNORS])
        check_heartbeat(heartbeat, context.request_version, assignors)
    except ApiError as error:
        return _refused(error)
    if request.member_epoch not in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return context.groups.ask(request.group_id, heartbeat, _heard, _refused)
    leave = ConsumerLeave(request.group_id, request.member_id, request.member_epoch, request.instance_id)
    epoch = request.member_epoch

    def left(member_id: str) -> Response:
        return Response(error_code=0, member_id=member_id, member_epoch=epoch, heartbeat_interval_ms=0)

    return context.groups.ask(request.group_id, leave, left, _refused)


def _heartbeat(request: Request, context: Context) -> ConsumerHeartbeat:
    owned: dict[bytes, frozenset[int]] | None = None
    if request.topic_partitions is not None:
        owned = {}
        for each in request.topic_partitions:
            owned[each.topic_id] = owned.get(each.topic_id, frozenset()) | frozenset(each.partitions)
    names = request.subscribed_topic_names
    return ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        subscribed_topics=None if names is None else frozenset(names),
        subscribed_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=owned,
        client_id=context.client_id,
        client_host=f"/{context.connection.remote_address[0]}",
        may_describe=None
        if context.decisions is None
        else partial(context.decisions.allows_now, AclOperation.DESCRIBE, AclResourceType.TOPIC),
    )


def _heard(heard: ConsumerHeartbeatReply) -> Response:
    assignment = None
    if heard.assignment is not None:
        owned = heard.assignment
        listed = [TopicPartitions(topic_id=each, partitions=sorted(owned[each])) for each in owned]
        assignment = Response.Assignment(topic_partitions=listed)
    return Response(
        error_code=0,
        member_id=heard.member_id,
        member_epoch=heard.epoch,
        heartbeat_interval_ms=heard.interval_ms,
        assignment=assignment,
    )


def _refused(error: ApiError) -> Response:
    return Response(error_code=error.code, error_message=error.text, member_epoch=0, heartbeat_interval_ms=0)
