"""DeleteTopics (key 20): delete topics by name, since v6 also by id."""

from __future__ import annotations

from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic, TopicDeletion
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

_FIRST_WITH_IDS = DeleteTopicsRequest.since("topics")
# Older clients do not know the error TOPIC_DELETION_DISABLED.
_FIRST_WITH_DISABLED = 3


def _refuse(request: DeleteTopicsRequest, error: ApiError) -> DeleteTopicsResponse:
    by_id = [TopicDeletion(topic.name, topic.topic_id, error) for topic in request.topics]
    return _response(by_id or [TopicDeletion(name, NO_ID, error) for name in request.topic_names])


@handles(
    DeleteTopicsRequest,
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

    def decided(reply: list[TopicDeletion] | ApiError) -> DeleteTopicsResponse | ApiError:
        return _for_version(reply, version) if isinstance(reply, ApiError) else _response(reply)

    return context.member.controller.submit(DeleteTopics(doomed)).map(decided).soonest()


def _response(deletions: list[TopicDeletion]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name,
                topic_id=id,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
            )
            for name, id, error in deletions
        ]
    )


def _for_version(error: ApiError, version: int) -> ApiError:
    """Convert TOPIC_DELETION_DISABLED for old clients, which do not know it."""
    if error.code == ErrorCode.TOPIC_DELETION_DISABLED and version < _FIRST_WITH_DISABLED:
        return ApiError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
    return error
