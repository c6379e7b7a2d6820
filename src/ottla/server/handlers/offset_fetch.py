"""OffsetFetch (key 9): how far groups have read.

v1-7 one group, its topics and an error at the top   v8 many groups at once   v9 member and epoch   v10 topics by id
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.groups.offsets.fetch import FetchedOffset, FetchOffsets
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.server.answer import Answer, Later, gather
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.portions import Portions
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

AskedGroup = OffsetFetchRequest.Group
AskedTopic = AskedGroup.Topics
GroupAnswer = OffsetFetchResponse.Group
TopicAnswer = GroupAnswer.Topics
PartitionAnswer = TopicAnswer.Partitions
OldTopicAnswer = OffsetFetchResponse.Topic
OldPartitionAnswer = OldTopicAnswer.Partition

_FIRST_VERSION_OF_MANY = 8
_FIRST_VERSION_BY_ID = 10
_FIRST_VERSION_WITH_ERROR = 2


@handles(OffsetFetchRequest, portions=Portions("groups", "groups", limits.GROUPS_PER_SLICE))
def offset_fetch(request: OffsetFetchRequest, context: Context) -> Answer[OffsetFetchResponse]:
    version = context.request_version
    if version >= _FIRST_VERSION_OF_MANY:
        asked = request.groups
    else:
        topics = request.topics
        wanted = (
            None if topics is None else [AskedTopic(name=t.name, partition_indexes=t.partition_indexes) for t in topics]
        )
        asked = [AskedGroup(group_id=request.group_id, topics=wanted)]
    answers = gather([_ask(group, request.require_stable, context) for group in asked])
    return answers.map(lambda groups: _response(groups, version)).soonest()


def _ask(group: AskedGroup, require_stable: bool, context: Context) -> Later[GroupAnswer]:
    by_id = context.request_version >= _FIRST_VERSION_BY_ID
    state = context.metadata.state
    unknown: list[TopicAnswer] = []
    wanted: dict[str, list[int]] = {}
    for topic in group.topics or ():
        name = topic.name
        if by_id:
            found = state.topic_by_id.get(topic.topic_id)
            if found is None:
                unknown.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            name = found.name
        wanted.setdefault(name, []).extend(topic.partition_indexes)
    partitions = tuple(TopicPartition(name, index) for name, indexes in wanted.items() for index in indexes)
    command = FetchOffsets(
        group.group_id,
        None if group.topics is None else partitions,
        group.member_id,
        group.member_epoch,
        require_stable,
    )

    def answer(value: list[FetchedOffset] | ApiError) -> GroupAnswer:
        if isinstance(value, ApiError):
            return _refusal(group, value.code, context.request_version)
        topics = [*_topics(wanted, value, by_id, context), *unknown]
        return GroupAnswer(group_id=group.group_id, topics=topics, error_code=ErrorCode.NONE)

    return context.groups.submit(group.group_id, command).map(answer)


def _topics(
    wanted: Iterable[str], found: Iterable[FetchedOffset], by_id: bool, context: Context
) -> Iterable[TopicAnswer]:
    """The wanted topics are there even if no partition of them was asked for."""
    state = context.metadata.state
    topics: dict[str, TopicAnswer] = {}

    def topic_of(name: str) -> TopicAnswer | None:
        if name not in topics:
            known = state.topics.get(name)
            if by_id and known is None:
                return None
            topics[name] = TopicAnswer(name=name, topic_id=known.id if known is not None else NO_ID, partitions=[])
        return topics[name]

    for name in wanted:
        topic_of(name)
    for each in found:
        topic = topic_of(each.partition.topic)
        if topic is not None:
            topic.partitions.append(
                PartitionAnswer(
                    partition_index=each.partition.partition,
                    committed_offset=each.offset,
                    committed_leader_epoch=each.leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error,
                )
            )
    return topics.values()


def _refusal(group: AskedGroup, code: ErrorCode, version: int) -> GroupAnswer:
    """The oldest version has no place for the group's error but its partitions."""
    topics = [_failed(topic, code) for topic in group.topics or ()] if version < _FIRST_VERSION_WITH_ERROR else []
    return GroupAnswer(group_id=group.group_id, topics=topics, error_code=code)


def _failed(topic: AskedTopic, code: ErrorCode) -> TopicAnswer:
    return TopicAnswer(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            PartitionAnswer(
                partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ],
    )


def _response(groups: list[GroupAnswer], version: int) -> OffsetFetchResponse:
    if version >= _FIRST_VERSION_OF_MANY:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        OldTopicAnswer(
            name=topic.name,
            partitions=[
                OldPartitionAnswer(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
