"""DeleteTopics (key 20): by name, since v6 also by id."""

from __future__ import annotations

from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic, TopicDeletion
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

_FIRST_WITH_IDS = DeleteTopicsRequest.since("topics")
# Older clients do not know the error TOPIC_DELETION_DISABLED.
_FIRST_WITH_DISABLED = 3


@handles(
    DeleteTopicsRequest,
    on="both",
    forwarded=True,
    portions=Portions(("topics", "topic_names"), ("responses", "responses"), limits.RESOURCES_PER_SLICE),
)
def delete_topics(request: DeleteTopicsRequest, context: Context) -> Answer[DeleteTopicsResponse]:
    version = context.request_version
    if version >= _FIRST_WITH_IDS:
        doomed = tuple(DoomedTopic(topic.name, topic.topic_id) for topic in request.topics)
    else:
        doomed = tuple(DoomedTopic(name) for name in request.topic_names)

    def refuse(error: ApiError) -> DeleteTopicsResponse:
        return _response([TopicDeletion(name, id, _for_version(error, version)) for name, id in doomed], version)

    return context.controller.ask(DeleteTopics(doomed), lambda deletions: _response(deletions, version), refuse)


def _response(deletions: list[TopicDeletion], version: int) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.DeletableTopicResult(
                name=name if version >= _FIRST_WITH_IDS else name or "",
                topic_id=id,
                error_code=error.code if error else ErrorCode.NONE,
                error_message=error.text if error else None,
            )
            for name, id, error in deletions
        ]
    )


def _for_version(error: ApiError, version: int) -> ApiError:
    """Old clients do not know that deletion can be switched off."""
    if error.code == ErrorCode.TOPIC_DELETION_DISABLED and version < _FIRST_WITH_DISABLED:
        return ApiError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
    return error
