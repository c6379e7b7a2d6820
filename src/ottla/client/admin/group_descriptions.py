"""Descriptions of groups: one class for all kinds of groups, built from four different responses."""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from ottla.client.coordinator import Coordinator
from ottla.client.errors import check
from ottla.client.membership.blobs import read_assignment
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.groups import consumer_group_describe
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


class GroupMember(NamedTuple):
    """One member of a group; `partitions` is its current assignment (empty for streams groups, which assign tasks)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    epoch: int | None
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group with its members; `epoch` is the group's epoch or generation, if the protocol has one."""

    group_id: str
    kind: str
    state: str
    epoch: int | None
    assignor: str
    members: tuple[GroupMember, ...]


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
        )
        for each in group.members
    )
    return GroupDescription(group.group_id, kind, group.group_state, group.group_epoch, group.assignor_name, members)


async def _streams(coordinator: Coordinator, group_id: str) -> GroupDescription:
    request = StreamsGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
    (group,) = (await coordinator.call(request, error_of=_first_error)).groups
    check(group.error_code, group.error_message)
    members = tuple(
        GroupMember(each.member_id, each.instance_id, each.client_id, each.client_host, each.member_epoch, ())
        for each in group.members
    )
    return GroupDescription(group_id, "streams", group.group_state, group.group_epoch, "", members)


def _partitions(
    topics: Iterable[consumer_group_describe.TopicPartitions | share_group_describe.TopicPartitions],
) -> tuple[TopicPartition, ...]:
    return tuple(sorted(TopicPartition(each.topic_name, index) for each in topics for index in each.partitions))
