"""OttlaDescribeGroupEvents (key 30000): what the coordinator remembers of a group. ApiVersions tells only our own
clients of it (ADR 0048).
"""

from __future__ import annotations

from ottla.groups.events.describe import DescribeGroupEvents, GroupHistory
from ottla.groups.events.event import GroupEvent
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.ottla_describe_group_events import (
    OttlaDescribeGroupEventsRequest,
    OttlaDescribeGroupEventsResponse,
)


@handles(OttlaDescribeGroupEventsRequest, needs=Needs((on_group(AclOperation.DESCRIBE),)))
def ottla_describe_group_events(
    request: OttlaDescribeGroupEventsRequest, context: Context
) -> Answer[OttlaDescribeGroupEventsResponse]:
    node_id, now_ms = context.node_id, context.runtime.now_ms()

    def respond(history: GroupHistory) -> OttlaDescribeGroupEventsResponse:
        return OttlaDescribeGroupEventsResponse(
            error_code=ErrorCode.NONE,
            node_id=node_id,
            now_ms=now_ms,
            since_ms=history.since_ms,
            events=[_event(each) for each in history.events],
        )

    return context.groups.ask(request.group_id, DescribeGroupEvents(request.group_id), respond, _refuse)


def _refuse(error: ApiError) -> OttlaDescribeGroupEventsResponse:
    return OttlaDescribeGroupEventsResponse(error_code=error.code, error_message=error.message, events=[])


def _event(event: GroupEvent) -> OttlaDescribeGroupEventsResponse.Event:
    member_id, instance_id, client_id, host = event.member
    return OttlaDescribeGroupEventsResponse.Event(
        at_ms=event.at_ms,
        kind=event.kind.value,
        epoch=event.epoch,
        members=event.members,
        member_id=member_id,
        instance_id=instance_id,
        client_id=client_id,
        client_host=host,
        setting=event.setting.name,
        setting_value=event.setting.value,
        detail=event.detail,
        duration_ms=event.duration_ms,
        times=event.times,
    )
