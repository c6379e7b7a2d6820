"""OffsetFetch (key 9): the committed offsets of groups.

v1-7 one group, its topics and an error at the top   v8 many groups at once   v9 member and epoch   v10 topics by id
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

from ottla.cluster.state import ClusterState
from ottla.groups.offsets.fetch import FetchedOffset, FetchedOffsets, FetchOffsets
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group, on_topic
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer, Later, gather
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

AskedGroup = OffsetFetchRequest.Group
AskedTopic = AskedGroup.Topics
GroupAnswer = OffsetFetchResponse.Group
TopicAnswer = GroupAnswer.Topics
PartitionAnswer = TopicAnswer.Partitions
OldTopicAnswer = OffsetFetchResponse.Topic
OldPartitionAnswer = OldTopicAnswer.Partition

_MANY = limits.OFFSETS_PER_SLICE
_FIRST_VERSION_OF_MANY = OffsetFetchRequest.since("groups")
_FIRST_VERSION_BY_ID = OffsetFetchRequest.Group.Topics.since("topic_id")
_FIRST_VERSION_WITH_ERROR = OffsetFetchResponse.since("error_code")


@handles(
    OffsetFetchRequest,
    needs=Needs(guard="offset_fetch", asks=(on_group(AclOperation.DESCRIBE), on_topic(AclOperation.DESCRIBE))),
    portions=Portions("groups", "groups", limits.GROUPS_PER_SLICE, changes=False),
)
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
    state = context.member.state
    questions = [_Question(group, version, state) for group in asked]
    known = gather([each.ask(request.require_stable, context) for each in questions])
    return context.runtime.slices.answer_of(known, lambda replies: _response(questions, replies, version))


class _Question:
    """The part of the request about one group."""

    def __init__(self, group: AskedGroup, version: int, state: ClusterState) -> None:
        self._group = group
        self._version = version
        self._state = state
        self._by_id = version >= _FIRST_VERSION_BY_ID
        self._partition_answer = PartitionAnswer if version >= _FIRST_VERSION_OF_MANY else OldPartitionAnswer

    def ask(self, require_stable: bool, context: Context) -> Later[FetchedOffsets | ApiError]:
        """Ask the coordinator: for a few partitions by name; for many, all offsets are read, and searched in slices."""
        group = self._group
        partitions = None
        if group.topics is not None and sum(1 + len(t.partition_indexes) for t in group.topics) <= _MANY:
            partitions = tuple(
                TopicPartition(name, index)
                for topic in group.topics
                if (name := self._name(topic)) is not None
                for index in topic.partition_indexes
            )
        command = FetchOffsets(group.group_id, partitions, group.member_id, group.member_epoch, require_stable)
        return context.groups.submit(group.group_id, command)

    def answer(self, reply: FetchedOffsets | ApiError) -> Generator[None, None, GroupAnswer]:
        group, code = self._group, ErrorCode.NONE
        if isinstance(reply, ApiError):
            code = reply.code
            # The oldest version has no field for the group's error: it is repeated in each partition.
            failed = group.topics or [] if self._version < _FIRST_VERSION_WITH_ERROR else []
            topics = yield from self._failed(failed, code)
        elif group.topics is None:
            topics = yield from self._all(reply)
        else:
            topics = yield from self._named(group.topics, reply)
        return GroupAnswer(group_id=group.group_id, topics=topics, error_code=code)

    def _all(self, reply: FetchedOffsets) -> Generator[None, None, list[TopicAnswer]]:
        topics: dict[str, TopicAnswer] = {}
        for number, partition in enumerate(reply.kept, 1):
            name = partition.topic
            if not self._by_id or name in self._state.topics:  # a deleted topic has no id
                topic = topics.get(name)
                if topic is None:
                    topic = topics[name] = self._topic(name)
                topic.partitions.append(self._told(reply.of(partition)))
            if number % _MANY == 0:
                yield
        return list(topics.values())

    def _named(self, asked: Iterable[AskedTopic], reply: FetchedOffsets) -> Generator[None, None, list[TopicAnswer]]:
        """Return the answers for named topics, also for a topic without partitions in the request."""
        topics: dict[str, TopicAnswer] = {}
        unknown: list[AskedTopic] = []
        pause = _Pause()
        for each in asked:
            name = self._name(each)
            if name is None:
                unknown.append(each)
                continue
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = self._topic(name)
            for some in _some(each.partition_indexes):
                topic.partitions += [self._told(reply.of(TopicPartition(name, index))) for index in some]
                if pause.is_due(len(some)):
                    yield
        failed = yield from self._failed(unknown, ErrorCode.UNKNOWN_TOPIC_ID)
        return [*topics.values(), *failed]

    def _failed(self, asked: Iterable[AskedTopic], code: ErrorCode) -> Generator[None, None, list[TopicAnswer]]:
        answers: list[TopicAnswer] = []
        pause = _Pause()
        for each in asked:
            topic = TopicAnswer(name=each.name, topic_id=each.topic_id, partitions=[])
            answers.append(topic)
            for some in _some(each.partition_indexes):
                topic.partitions += [self._told(FetchedOffset(TopicPartition("", index), error=code)) for index in some]
                if pause.is_due(len(some)):
                    yield
        return answers

    def _name(self, topic: AskedTopic) -> str | None:
        """Return the topic's name; None if no topic has that id."""
        return self._state.topic_name(topic.topic_id) if self._by_id else topic.name

    def _topic(self, name: str) -> TopicAnswer:
        known = self._state.topics.get(name)
        return TopicAnswer(name=name, topic_id=known.id if known is not None else NO_ID, partitions=[])

    def _told(self, offset: FetchedOffset) -> Any:
        return self._partition_answer(
            partition_index=offset.partition.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
            error_code=offset.error,
        )


def _response(
    questions: Sequence[_Question], replies: Sequence[FetchedOffsets | ApiError], version: int
) -> Generator[None, None, OffsetFetchResponse]:
    groups = []
    for question, reply in zip(questions, replies, strict=True):
        groups.append((yield from question.answer(reply)))
    if version >= _FIRST_VERSION_OF_MANY:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [OldTopicAnswer(name=topic.name, partitions=list[Any](topic.partitions)) for topic in group.topics]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)


class _Pause:
    """Decides when a slice ends, by the number of answers it has made."""

    def __init__(self) -> None:
        self._told = 0

    def is_due(self, more: int) -> bool:
        self._told += 1 + more
        if self._told <= _MANY:
            return False
        self._told = 0
        return True


def _some(indexes: list[int]) -> Iterator[list[int]]:
    """Yield the indexes in parts of a slice each; one empty part if there are none."""
    return (indexes[first : first + _MANY] for first in range(0, max(len(indexes), 1), _MANY))
