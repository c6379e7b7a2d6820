"""The guard of DeleteTopics: DELETE on the cluster, or on each topic.

A client that may not describe a topic is not told whether it exists, nor its name if it is given by id.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import merged
from ottla.server.api.guard.checks import decisions_of, may_describe
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

TopicAnswer = DeleteTopicsResponse.DeletableTopicResult


class _Named(NamedTuple):
    """A topic as the request names it: by its name, by its id, or (which the handler refuses) by both or neither."""

    name: str | None
    id: bytes = NO_ID


def guard(handler: Handler) -> Handler:
    def delete_topics(request: DeleteTopicsRequest, context: Context) -> Answer[DeleteTopicsResponse]:
        decisions = decisions_of(context)
        if decisions.suffices_on_cluster(AclOperation.DELETE):
            return handler(request, context)
        named = [_Named(topic.name, topic.topic_id) for topic in request.topics]
        named += [_Named(name) for name in request.topic_names]
        told = {each: answer for each in _once(named) if (answer := _refusal(each, decisions, context)) is not None}
        if not told:
            return handler(request, context)
        some, refused = copy.copy(request), list(told.values())
        some.topics = [each for each in request.topics if _Named(each.name, each.topic_id) not in told]
        some.topic_names = [name for name in request.topic_names if _Named(name) not in told]
        is_empty = not some.topics and not some.topic_names
        decided = DeleteTopicsResponse(responses=[]) if is_empty else handler(some, context)

        def merge(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
            response.responses += refused
            return response

        return merged(decided, merge)

    return delete_topics


def _once(named: list[_Named]) -> list[_Named]:
    """Return the topics that are named once; the others are refused for that."""
    times = Counter(named)
    return [each for each in named if times[each] == 1 and (each.name is None) != (each.id == NO_ID)]


def _refusal(named: _Named, decisions: Decisions, context: Context) -> TopicAnswer | None:
    """Return the refusal of a topic; None if the handler may say what becomes of it."""
    state = context.member.state
    if named.name is not None:
        if may_describe(named.name, decisions) and (
            named.name not in state.topics or _may_delete(named.name, decisions)
        ):
            return None
        return _refused(named.name, NO_ID)
    found = state.topic_by_id.get(named.id)
    if found is None or _may_delete(found.name, decisions):
        return None
    return _refused(found.name if may_describe(found.name, decisions) else None, named.id)


def _may_delete(name: str, decisions: Decisions) -> bool:
    return decisions.allows(AclOperation.DELETE, AclResourceType.TOPIC, name)


def _refused(name: str | None, id: bytes) -> TopicAnswer:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return TopicAnswer(name=name, topic_id=id, error_code=code, error_message=code.message)
