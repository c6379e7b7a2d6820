"""OffsetDelete (key 47): delete committed offsets of a group."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.groups.offsets.remove import DeleteOffsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic
from ottla.server.loop.later import Answer
from ottla.wire.messages.groups.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

TopicAnswer = OffsetDeleteResponse.Topic
PartitionAnswer = TopicAnswer.Partition


def _named(request: OffsetDeleteRequest) -> Iterator[str]:
    yield f"group {request.group_id}"
    yield from (topic.name for topic in request.topics)


@handles(
    OffsetDeleteRequest,
    needs=Needs(
        (on_group(AclOperation.DELETE),),
        items=CheckedItems(
            on_topic(AclOperation.READ), "topics.partitions", "topics.partitions", order="first", always_asks=True
        ),
        changes=_named,
    ),
)
def offset_delete(request: OffsetDeleteRequest, context: Context) -> Answer[OffsetDeleteResponse]:
    if not request.group_id:
        return _refuse(ApiError(ErrorCode.INVALID_GROUP_ID))
    topics: dict[str, TopicAnswer] = {}
    existing: list[TopicPartition] = []
    for topic in request.topics:
        found = context.member.state.topics.get(topic.name)
        for partition in topic.partitions:
            index = partition.partition_index
            if found is not None and 0 <= index < len(found.partitions):
                existing.append(TopicPartition(topic.name, index))
            else:
                _add(topics, topic.name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def respond(codes: list[ErrorCode]) -> OffsetDeleteResponse:
        for (name, index), code in zip(existing, codes, strict=True):
            _add(topics, name, index, code)
        return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=list(topics.values()))

    return context.groups.ask(request.group_id, DeleteOffsets(request.group_id, tuple(existing)), respond, _refuse)


def _add(topics: dict[str, TopicAnswer], name: str, index: int, code: ErrorCode) -> None:
    topic = topics.get(name)
    if topic is None:
        topic = topics[name] = TopicAnswer(name=name, partitions=[])
    topic.partitions.append(PartitionAnswer(partition_index=index, error_code=code))


def _refuse(error: ApiError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code, topics=[])
