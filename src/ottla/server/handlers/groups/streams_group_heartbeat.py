"""StreamsGroupHeartbeat (key 88): a member of a streams group joins, reports its tasks and gets new ones."""

from __future__ import annotations

from functools import partial

from ottla.groups.modern.group import LEAVE_EPOCH
from ottla.groups.streams.checks import check_heartbeat, check_topology_names
from ottla.groups.streams.endpoints import EndpointShare, TopicShare
from ottla.groups.streams.entries import tasks_of, topology_of
from ottla.groups.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from ottla.groups.streams.leave import StreamsLeave
from ottla.groups.streams.member import UserEndpoint
from ottla.groups.streams.tasks import Tasks, TaskSet
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import LETTER_TOPICS, Needs, on_group, on_topic
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups import streams_group_heartbeat as messages
from ottla.wire.messages.groups.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse


@handles(
    StreamsGroupHeartbeatRequest,
    needs=Needs(
        (on_group(AclOperation.READ),),
        guard="streams_group_heartbeat",
        unnoted="members send it for ever; the right to each topic that the group has created is noted",
        asks=(on_topic(AclOperation.DESCRIBE), *LETTER_TOPICS),
    ),
)
def streams_group_heartbeat(request: Request, context: Context) -> Answer[Response]:
    try:
        context.groups.require_streams_protocol()
        heartbeat = _heartbeat(request, context)
        if heartbeat.topology is not None:
            check_topology_names(heartbeat.topology)
        _check_supported(request)
        roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
        check_heartbeat(heartbeat, request.instance_id, roles)
    except ApiError as error:
        return _refused(error)
    if request.member_epoch != LEAVE_EPOCH:
        return context.groups.ask(request.group_id, heartbeat, _heard, _refused)
    leave = StreamsLeave(request.group_id, request.member_id, request.shutdown_application)
    return context.groups.ask(request.group_id, leave, _left, _refused)


def _heartbeat(request: Request, context: Context) -> StreamsHeartbeat:
    owned = None
    if request.active_tasks is not None and request.standby_tasks is not None and request.warmup_tasks is not None:
        owned = TaskSet(tasks_of(request.active_tasks), tasks_of(request.standby_tasks), tasks_of(request.warmup_tasks))
    endpoint, tags = request.user_endpoint, request.client_tags
    return StreamsHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=None if request.topology is None else topology_of(request.topology),
        owned=owned,
        process_id=request.process_id,
        endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
        client_tags=None if tags is None else tuple({each.key: each.value for each in tags}.items()),
        wants_shutdown=request.shutdown_application,
        client_id=context.client_id,
        client_host=f"/{context.connection.remote_address[0]}",
        may_create=None if context.decisions is None else partial(_may_create, context.decisions),
    )


def _may_create(decisions: Decisions, name: str) -> bool:
    return decisions.suffices_on_cluster(AclOperation.CREATE) or decisions.allows(
        AclOperation.CREATE, AclResourceType.TOPIC, name
    )


def _check_supported(request: Request) -> None:
    """Refuse fields of the protocol that Kafka 4.3 does not support yet."""
    if request.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise _invalid("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise _invalid("WarmupTasks are not supported yet.")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _heard(heard: StreamsHeartbeatReply) -> Response:
    tasks, endpoints = heard.tasks, heard.endpoints
    response = _response(heard.member_id, heard.epoch)
    response.heartbeat_interval_ms = heard.interval_ms
    response.status = [Response.Status(status_code=each.status, status_detail=each.detail) for each in heard.statuses]
    response.endpoint_information_epoch = heard.endpoint_epoch
    if tasks is not None:
        response.active_tasks = _listed(tasks.active)
        response.standby_tasks = _listed(tasks.standby)
        response.warmup_tasks = _listed(tasks.warmup)
    if endpoints is not None:
        response.partitions_by_user_endpoint = [_endpoint(each) for each in endpoints]
    return response


def _listed(tasks: Tasks) -> list[Response.TaskIds]:
    return [Response.TaskIds(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)]


def _endpoint(share: EndpointShare) -> Response.EndpointToPartitions:
    return Response.EndpointToPartitions(
        user_endpoint=messages.Endpoint(host=share.endpoint.host, port=share.endpoint.port),
        active_partitions=_partitions(share.active),
        standby_partitions=_partitions(share.standby),
    )


def _partitions(shares: tuple[TopicShare, ...]) -> list[messages.TopicPartition]:
    return [messages.TopicPartition(topic=each.topic, partitions=list(each.partitions)) for each in shares]


def _left(member_id: str) -> Response:
    return _response(member_id, LEAVE_EPOCH)


def _refused(error: ApiError) -> Response:
    response = _response("", 0)
    response.error_code, response.error_message = error.code, error.text
    return response


def _response(member_id: str, epoch: int) -> Response:
    """Return a response in which fields that Kafka does not support yet (lag of tasks, offset reports) are 0."""
    return Response(
        error_code=ErrorCode.NONE,
        member_id=member_id,
        member_epoch=epoch,
        heartbeat_interval_ms=0,
        acceptable_recovery_lag=0,
        task_offset_interval_ms=0,
        status=[],
        endpoint_information_epoch=0,
    )
