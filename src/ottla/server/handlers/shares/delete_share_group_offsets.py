"""DeleteShareGroupOffsets (key 92): delete the offsets of topics of a share group without members."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.groups.share.offsets import DeleteShareOffsets, OffsetsDeleted, ShareOffsetsDeletion
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_group, on_topic
from ottla.server.api.portions import Portions
from ottla.wire.messages.shares.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

Response = DeleteShareGroupOffsetsResponse
TopicAnswer = Response.Topic


def _named(request: DeleteShareGroupOffsetsRequest) -> Iterator[str]:
    yield f"group {request.group_id}"
    yield from (topic.topic_name for topic in request.topics)


@handles(
    DeleteShareGroupOffsetsRequest,
    needs=Needs(
        (on_group(AclOperation.DELETE),),
        explained=True,
        items=CheckedItems(
            on_topic(AclOperation.READ, "topic_name"),
            "topics",
            "responses",
            order="first",
            always_asks=True,
            explained=True,
        ),
        changes=_named,
    ),
    portions=Portions("topics", "responses", limits.ITEMS_PER_SLICE),
)
async def delete_share_group_offsets(request: DeleteShareGroupOffsetsRequest, context: Context) -> Response:
    group_id = request.group_id
    try:
        context.shares.require_enabled()
    except ApiError as refusal:
        return _refused(refusal)
    if not group_id:
        return _refused(ApiError(ErrorCode.INVALID_GROUP_ID))
    names = tuple(dict.fromkeys(topic.topic_name for topic in request.topics))
    deletion: ShareOffsetsDeletion | ApiError = await context.groups.submit(
        group_id, DeleteShareOffsets(group_id, names)
    )
    if isinstance(deletion, ApiError):
        return _refused(deletion)
    answers = [_topic(name, NO_ID, error) for name, error in deletion.errors.items()]
    failed: dict[bytes, ApiError] = {}
    for (topic_id, _), error in (await context.groups.share_states.delete(group_id, deletion.partitions)).items():
        if error is not None:
            failed.setdefault(topic_id, error)
    done = frozenset(deletion.partitions) - failed.keys()
    if done:
        await context.groups.submit(group_id, OffsetsDeleted(group_id, done))
    topics = context.member.state.topic_by_id
    for topic_id in deletion.partitions:
        name = topics[topic_id].name if topic_id in topics else ""
        answers.append(_topic(name, topic_id, failed.get(topic_id)))
    return Response(error_code=ErrorCode.NONE, responses=answers)


def _topic(name: str, topic_id: bytes, error: ApiError | None) -> TopicAnswer:
    return TopicAnswer(
        topic_name=name,
        topic_id=topic_id,
        error_code=error.code if error is not None else ErrorCode.NONE,
        error_message=error.text if error is not None else None,
    )


def _refused(error: ApiError) -> Response:
    return Response(error_code=error.code, error_message=error.text, responses=[])
