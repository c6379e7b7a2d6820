"""AlterShareGroupOffsets (key 91): reset the start offsets of a share group without members."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.groups.share.offsets import AlterOffsets, ShareOffsetsAlteration
from ottla.groups.share.state_partitions import SharesInitialized
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic
from ottla.server.api.portions import Portions
from ottla.server.groups.share_group_states import Outcomes
from ottla.wire.messages.shares.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)

Response = AlterShareGroupOffsetsResponse
TopicAnswer = Response.Topic
PartitionAnswer = TopicAnswer.Partition

_UNKNOWN = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)


def _named(request: AlterShareGroupOffsetsRequest) -> Iterator[str]:
    yield f"group {request.group_id}"
    yield from (topic.topic_name for topic in request.topics)


@handles(
    AlterShareGroupOffsetsRequest,
    needs=Needs(
        (on_group(AclOperation.READ),),
        explained=True,
        items=CheckedItems(
            on_topic(AclOperation.READ, "topic_name"),
            "topics.partitions",
            "responses.partitions",
            order="first",
            always_asks=True,
        ),
        changes=_named,
    ),
    portions=Portions("topics.partitions", "responses.partitions", limits.ITEMS_PER_SLICE),
)
async def alter_share_group_offsets(request: AlterShareGroupOffsetsRequest, context: Context) -> Response:
    try:
        context.shares.require_enabled()
    except ApiError as error:
        return _refused(error)
    if not request.group_id:
        return _refused(ApiError(ErrorCode.INVALID_GROUP_ID))
    topics = context.member.state.topics
    asked = {
        topic.topic_name: {each.partition_index: each.start_offset for each in topic.partitions}
        for topic in request.topics
        if topic.topic_name in topics
    }
    for starts in asked.values():
        if any(index < 0 for index in starts):
            # Kafka detects this so late that it has only this error for it.
            return _refused(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "A partition's number cannot be negative."))
    alteration: ShareOffsetsAlteration | ApiError = await context.groups.submit(
        request.group_id, AlterOffsets(request.group_id, asked)
    )
    if isinstance(alteration, ApiError):
        return _refused(alteration)
    outcomes = await context.groups.share_states.initialize(
        request.group_id, alteration.state_epoch, alteration.offsets
    )
    if outcomes and not any(outcomes.values()):
        done = {topic_id: frozenset(each) for topic_id, each in alteration.offsets.items()}
        await context.groups.submit(request.group_id, SharesInitialized(request.group_id, done))
    return Response(error_code=ErrorCode.NONE, responses=[_topic(topic, outcomes, context) for topic in request.topics])


def _topic(topic: AlterShareGroupOffsetsRequest.Topic, outcomes: Outcomes, context: Context) -> TopicAnswer:
    found = context.member.state.topics.get(topic.topic_name)
    topic_id = found.id if found is not None else NO_ID
    return TopicAnswer(
        topic_name=topic.topic_name,
        topic_id=topic_id,
        partitions=[
            _partition(each.partition_index, outcomes.get((topic_id, each.partition_index), _UNKNOWN))
            for each in topic.partitions
        ],
    )


def _partition(index: int, error: ApiError | None) -> PartitionAnswer:
    if error is None:
        return PartitionAnswer(partition_index=index, error_code=ErrorCode.NONE)
    return PartitionAnswer(partition_index=index, error_code=error.code, error_message=error.text)


def _refused(error: ApiError) -> Response:
    return Response(error_code=error.code, error_message=error.text, responses=[])
