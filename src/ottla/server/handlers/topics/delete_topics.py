"""DeleteTopics (key 20): delete topics by name, since v6 also by id."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic, TopicDeletion
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, uuid_text
from ottla.security.acls import AclOperation
from ottla.security.quotas.mutations import throttle_ms
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster, on_topic
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

_FIRST_WITH_IDS = DeleteTopicsRequest.since("topics")
# Older clients do not know the error TOPIC_DELETION_DISABLED.
_FIRST_WITH_DISABLED = 3
_FIRST_STRICT = 5  # the first version that is refused by a quota, not only throttled


def _refuse(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    by_id = [TopicDeletion(topic.name, topic.topic_id, error) for topic in request.topics]
    return _response(by_id or [TopicDeletion(name, NO_ID, error) for name in request.topic_names])


def _named(request: DeleteTopicsRequest) -> Iterator[str]:
    yield from (uuid_text(each.topic_id) if each.name is None else each.name for each in request.topics)
    yield from request.topic_names


@handles(
    DeleteTopicsRequest,
    needs=Needs(
        guard="delete_topics",
        asks=(on_cluster(AclOperation.DELETE), on_topic(AclOperation.DESCRIBE), on_topic(AclOperation.DELETE)),
        changes=_named,
    ),
    on="both",
    forwarded=True,
    portions=Portions(("topics", "topic_names"), ("responses", "responses"), limits.RESOURCES_PER_SLICE),
    refuse=_refuse,
)
def delete_topics(request: DeleteTopicsRequest, context: Context) -> Decided[DeleteTopicsResponse]:
    version = context.request_version
    if version >= _FIRST_WITH_IDS:
        doomed = tuple(DoomedTopic(topic.name, topic.topic_id) for topic in request.topics)
    else:
        doomed = tuple(DoomedTopic(name) for name in request.topic_names)

    quota = context.quotas.mutating(context, strict=version >= _FIRST_STRICT)

    def decided(reply: list[TopicDeletion] | ApiError) -> DeleteTopicsResponse | ApiError:
        if isinstance(reply, ApiError):
            return _for_version(reply, version)
        return _response(reply, throttle_ms(quota))

    return context.member.controller.submit(DeleteTopics(doomed, quota)).map(decided).soonest()


def _response(deletions: list[TopicDeletion], throttle_ms: int = 0) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        throttle_time_ms=throttle_ms,
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name,
                topic_id=id,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
            )
            for name, id, error in deletions
        ],
    )


def _for_version(error: ApiError, version: int) -> ApiError:
    """Convert TOPIC_DELETION_DISABLED for old clients, which do not know it."""
    if error.code == ErrorCode.TOPIC_DELETION_DISABLED and version < _FIRST_WITH_DISABLED:
        return ApiError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
    return error
