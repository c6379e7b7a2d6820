"""Descriptions of groups: one class for all kinds of groups, built from four different responses."""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from ottla.client.coordinator import Coordinator
from ottla.client.errors import check
from ottla.client.membership.blobs import read_assignment, read_member
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.groups import consumer_group_describe, streams_group_describe
from ottla.wire.messages.groups.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.wire.messages.groups.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from ottla.wire.messages.shares import share_group_describe
from ottla.wire.messages.shares.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

_ConsumerGroup: TypeAlias = ConsumerGroupDescribeResponse.DescribedGroup
_ShareGroup: TypeAlias = ShareGroupDescribeResponse.DescribedGroup
_Response: TypeAlias = (
    DescribeGroupsResponse | ConsumerGroupDescribeResponse | ShareGroupDescribeResponse | StreamsGroupDescribeResponse
)
_CONSUMER_PROTOCOL = "consumer"


class MemberTask(NamedTuple):
    """A task of a streams group that a member has; `role` is active, standby or warmup."""

    role: str
    subtopology: str
    partition: int


class GroupMember(NamedTuple):
    """One member of a group; `partitions` is its current assignment (empty for streams groups, which assign tasks).

    `target` is the assignment that it is to get; None if the protocol has none.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    partitions: tuple[TopicPartition, ...]
    rack: str | None = None
    subscribed: tuple[str, ...] = ()
    regex: str | None = None
    target: tuple[TopicPartition, ...] | None = None
    tasks: tuple[MemberTask, ...] = ()


class GroupDescription(NamedTuple):
    """A group with its members; `epoch` is the group's epoch or generation, if the protocol has one. `subtopologies`
    are those of a streams group, each with the topics that it reads.
    """

    group_id: str
    kind: str
    state: str
    epoch: int | None
    assignor: str
    members: tuple[GroupMember, ...]
    subtopologies: tuple[tuple[str, tuple[str, ...]], ...] = ()


async def describe(coordinator: Coordinator, group_id: str, kind: str) -> GroupDescription:
    if kind == "consumer":
        return await _consumer(coordinator, group_id)
    if kind == "share":
        return await _share(coordinator, group_id)
    if kind == "streams":
        return await _streams(coordinator, group_id)
    return await _classic(coordinator, group_id)


def _first_error(answer: _Response) -> int:
    return answer.groups[0].error_code


async def _classic(coordinator: Coordinator, group_id: str) -> GroupDescription:
    request = DescribeGroupsRequest(groups=[group_id])
    (group,) = (await coordinator.call(request, error_of=_first_error)).groups
    check(group.error_code, group.error_message)
    consumers = group.protocol_type == _CONSUMER_PROTOCOL
    members = tuple(
        GroupMember(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            None,
            tuple(sorted(_assigned(each.member_assignment))) if consumers else (),
            subscribed=_subscribed(each.member_metadata) if consumers else (),
        )
        for each in group.members
    )
    return GroupDescription(group_id, "classic", group.group_state, None, group.protocol_data, members)


def _assigned(blob: bytes) -> Iterable[TopicPartition]:
    if not blob:
        return ()
    try:
        return read_assignment(blob)
    except ApiError as error:
        if error.code != ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            raise
        return ()  # a custom assignor, whose format is unknown


def _subscribed(blob: bytes) -> tuple[str, ...]:
    try:
        return tuple(sorted(read_member("", blob, None).topics)) if blob else ()
    except ApiError as error:
        if error.code != ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            raise
        return ()


async def _consumer(coordinator: Coordinator, group_id: str) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    answer = await coordinator.call(request, error_of=_first_error)
    return _of_partitions(answer.groups[0], "consumer")


async def _share(coordinator: Coordinator, group_id: str) -> GroupDescription:
    request = ShareGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    answer = await coordinator.call(request, error_of=_first_error)
    return _of_partitions(answer.groups[0], "share")


def _of_partitions(group: _ConsumerGroup | _ShareGroup, kind: str) -> GroupDescription:
    """Describe a consumer or share group; the responses are alike, except that share groups have no static members."""
    check(group.error_code, group.error_message)
    members = tuple(
        GroupMember(
            each.member_id,
            getattr(each, "instance_id", None),
            each.client_id,
            each.client_host,
            each.member_epoch,
            _partitions(each.assignment.topic_partitions),
            each.rack_id,
            tuple(sorted(each.subscribed_topic_names or ())),
            getattr(each, "subscribed_topic_regex", None),
            _target(each),
        )
        for each in group.members
    )
    return GroupDescription(group.group_id, kind, group.group_state, group.group_epoch, group.assignor_name, members)


async def _streams(coordinator: Coordinator, group_id: str) -> GroupDescription:
    request = StreamsGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    (group,) = (await coordinator.call(request, error_of=_first_error)).groups
    check(group.error_code, group.error_message)
    members = tuple(
        GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.member_epoch,
            (),
            each.rack_id,
            tasks=tuple(_tasks(each.assignment)),
        )
        for each in group.members
    )
    parts = group.topology.subtopologies if group.topology is not None else None
    read = tuple(
        (
            each.subtopology_id,
            tuple(sorted({*each.source_topics, *(one.name for one in each.repartition_source_topics)})),
        )
        for each in parts or ()
    )
    return GroupDescription(group_id, "streams", group.group_state, group.group_epoch, "", members, read)


def _tasks(assignment: streams_group_describe.Assignment) -> Iterable[MemberTask]:
    roles = (
        ("active", assignment.active_tasks),
        ("standby", assignment.standby_tasks),
        ("warmup", assignment.warmup_tasks),
    )
    for role, tasks in roles:
        for each in tasks:
            yield from (MemberTask(role, each.subtopology_id, partition) for partition in sorted(each.partitions))


def _target(member: _ConsumerGroup.Member | _ShareGroup.Member) -> tuple[TopicPartition, ...] | None:
    if isinstance(member, _ConsumerGroup.Member):
        return _partitions(member.target_assignment.topic_partitions)
    return None


def _partitions(
    topics: Iterable[consumer_group_describe.TopicPartitions | share_group_describe.TopicPartitions],
) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(each.topic_name, index) for each in topics for index in each.partitions))
