"""OffsetCommit (key 8): store the committed offsets of a group.

Topics and partitions that do not exist are answered here; the rest goes to the group's coordinator as one command.
"""

from __future__ import annotations

from ottla.groups.group import Committer
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse

Topic = OffsetCommitRequest.Topic
TopicAnswer = OffsetCommitResponse.Topic
PartitionAnswer = TopicAnswer.Partition

_FIRST_VERSION_BY_ID = OffsetCommitRequest.Topic.since("topic_id")


@handles(
    OffsetCommitRequest,
    needs=Needs(
        (on_group(AclOperation.READ),),
        mirror="topics.partitions > topics.partitions",
        items=CheckedItems(
            on_topic(AclOperation.READ), "topics.partitions", "topics.partitions", id="topic_id", order="first"
        ),
    ),
    portions=Portions("topics.partitions", "topics.partitions", limits.OFFSETS_PER_SLICE),
)
def offset_commit(request: OffsetCommitRequest, context: Context) -> Answer[OffsetCommitResponse]:
    by_id = context.request_version >= _FIRST_VERSION_BY_ID
    answers = _Answers(by_id=by_id)
    offsets: list[NewOffset] = []
    for topic in request.topics:
        offsets.extend(_existing(topic, by_id, answers, context))
    if not offsets:
        return answers.response()
    by = Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch, context.request_version
    )
    command = CommitOffsets(request.group_id, by, tuple(offsets), request.retention_time_ms)

    def respond(codes: list[ErrorCode]) -> OffsetCommitResponse:
        for new, code in zip(offsets, codes, strict=True):
            answers.add(new.partition.topic, new.topic_id, new.partition.partition, code)
        return answers.response()

    def refuse(error: ApiError) -> OffsetCommitResponse:
        refused = _Answers(by_id=by_id)
        for topic in request.topics:
            for partition in topic.partitions:
                refused.add(topic.name, topic.topic_id, partition.partition_index, error.code)
        return refused.response()

    return context.groups.ask(request.group_id, command, respond, refuse)


def _existing(topic: Topic, by_id: bool, answers: _Answers, context: Context) -> list[NewOffset]:
    """Return the offsets of partitions that exist; answer the others with an error."""
    state = context.member.state
    found = state.topic_by_id.get(topic.topic_id) if by_id else state.topics.get(topic.name)
    offsets: list[NewOffset] = []
    for partition in topic.partitions:
        index = partition.partition_index
        if found is None or not 0 <= index < len(found.partitions):
            unknown_id = found is None and by_id
            code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answers.add(topic.name, topic.topic_id, index, code)
        else:
            offsets.append(
                NewOffset(
                    TopicPartition(found.name, index),
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                    topic.topic_id,
                )
            )
    return offsets


class _Answers:
    """The response under construction: partitions under their topics, in the order in which they were settled."""

    def __init__(self, *, by_id: bool) -> None:
        self._by_id = by_id
        self._topics: dict[str | bytes, TopicAnswer] = {}

    def add(self, name: str, topic_id: bytes, index: int, code: ErrorCode) -> None:
        key = topic_id if self._by_id else name
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = TopicAnswer(name=name, topic_id=topic_id, partitions=[])
        topic.partitions.append(PartitionAnswer(partition_index=index, error_code=code))

    def response(self) -> OffsetCommitResponse:
        return OffsetCommitResponse(topics=list(self._topics.values()))
