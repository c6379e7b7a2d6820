"""DescribeShareGroupOffsets (key 90): the start offsets and the lag of share groups.

v1 lag
"""

from __future__ import annotations

from ottla.groups.share.member import SharedTopics
from ottla.groups.share.state_partitions import ReadInitializedPartitions
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH, NO_ID, TopicPartition
from ottla.model.limits import INT64_MAX
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic
from ottla.server.api.portions import Portions
from ottla.server.api.share_state_requests import ask_each
from ottla.server.loop.later import Later
from ottla.shares.state.batches import NO_OFFSET
from ottla.shares.state.commands import ReadSummary, Summary
from ottla.shares.state.partition import NO_COUNT
from ottla.wire.messages.shares.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

GroupAnswer = DescribeShareGroupOffsetsResponse.Group
TopicAnswer = GroupAnswer.Topic
PartitionAnswer = TopicAnswer.Partition

_NOTHING = Summary(0, FIRST_LEADER_EPOCH, start_offset=NO_OFFSET, delivery_complete_count=NO_COUNT)
_NO_LAG = -1


@handles(
    DescribeShareGroupOffsetsRequest,
    needs=Needs(
        items=CheckedItems(on_group(AclOperation.DESCRIBE), "groups", "groups", order="place"),
        guard="describe_share_group_offsets",
        asks=(on_topic(AclOperation.DESCRIBE),),
    ),
    portions=Portions("groups.topics.partitions", "groups.topics.partitions", limits.ITEMS_PER_SLICE),
)
async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, context: Context
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(groups=[await _group(group, context) for group in request.groups])


async def _group(group: DescribeShareGroupOffsetsRequest.Group, context: Context) -> GroupAnswer:
    try:
        context.shares.require_enabled()
    except ApiError as error:
        return _answer(group.group_id, [], error)
    unknown: list[TopicAnswer] = []
    wanted: dict[bytes, list[int]] = {}
    if group.topics is None:
        initialized: SharedTopics | ApiError = await context.groups.submit(
            group.group_id, ReadInitializedPartitions(group.group_id)
        )
        if isinstance(initialized, ApiError):
            return _answer(group.group_id, [], initialized)
        wanted = {topic_id: sorted(each.partitions) for topic_id, each in initialized.items()}
    else:
        for topic in group.topics:
            found = context.member.state.topics.get(topic.topic_name)
            if found is not None:
                wanted[found.id] = topic.partitions
            else:
                nothing = [_partition(index, _NOTHING, _NO_LAG) for index in topic.partitions]
                unknown.append(TopicAnswer(topic_name=topic.topic_name, topic_id=NO_ID, partitions=nothing))
    if any(not each or min(each) < 0 for each in wanted.values()):
        return _answer(group.group_id, [], ApiError(ErrorCode.UNKNOWN_SERVER_ERROR))  # as Kafka answers
    summaries = await _summaries(group.group_id, wanted, context)
    names = context.member.state.topic_by_id
    places = [
        TopicPartition(names[id].name, index) for id, each in summaries.items() if id in names for index, _ in each
    ]
    ends = await context.shares.high_watermarks(places)
    known = [
        TopicAnswer(
            topic_name=names[topic_id].name,
            topic_id=topic_id,
            partitions=[
                _partition(index, summary, _lag(summary, ends.get(TopicPartition(names[topic_id].name, index))))
                for index, summary in each
            ],
        )
        for topic_id, each in summaries.items()
        if topic_id in names
    ]
    return _answer(group.group_id, known + unknown)


def _summaries(
    group_id: str, wanted: dict[bytes, list[int]], context: Context
) -> Later[dict[bytes, list[tuple[int, Summary]]]]:
    """Return the summaries of the share coordinators; a blank one for a partition whose coordinator refuses."""
    commands = {
        (topic_id, index): ReadSummary(group_id, topic_id, index) for topic_id, each in wanted.items() for index in each
    }
    return ask_each(
        context.shares.states.submit,
        commands,
        lambda partition, summary: (partition, summary),
        lambda partition, _: (partition, _NOTHING),
    )


def _lag(summary: Summary, end: int | None) -> int:
    """Return the number of records from the start offset on that are neither acknowledged nor archived."""
    if end is None or summary.start_offset == NO_OFFSET or summary.delivery_complete_count == NO_COUNT:
        return _NO_LAG
    # the stored values may be nonsense
    return min(end - summary.start_offset - summary.delivery_complete_count, INT64_MAX)


def _partition(index: int, summary: Summary, lag: int) -> PartitionAnswer:
    return PartitionAnswer(
        partition_index=index,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=lag,
        error_code=ErrorCode.NONE,
    )


def _answer(group_id: str, topics: list[TopicAnswer], error: ApiError | None = None) -> GroupAnswer:
    return GroupAnswer(
        group_id=group_id,
        topics=topics,
        error_code=error.code if error is not None else ErrorCode.NONE,
        error_message=error.text if error is not None else None,
    )
