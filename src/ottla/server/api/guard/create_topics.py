"""The guard of CreateTopics: CREATE on the cluster, or on each topic; DESCRIBE_CONFIGS to be told its settings;
rights on the dead-letter topics that settings name.
"""

from __future__ import annotations

import copy
from collections import Counter

from ottla.model.errors import ErrorCode
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.model.resources import Resource, ResourceType
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import merged
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.guard.letter_topics import refusal_of
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse

TopicAnswer = CreateTopicsResponse.CreatableTopicResult


def guard(handler: Handler) -> Handler:
    def create_topics(request: CreateTopicsRequest, context: Context) -> Answer[CreateTopicsResponse]:
        decisions = decisions_of(context)
        refused = _refused(request, decisions) | _refused_letters(request, context)
        some = request
        if refused:
            some = copy.copy(request)
            some.topics = [topic for topic in request.topics if topic.name not in refused]
        answer = handler(some, context) if some.topics or not refused else CreateTopicsResponse(topics=[])

        def merge(response: CreateTopicsResponse) -> CreateTopicsResponse:
            response.topics = [_described(topic, decisions) for topic in response.topics]
            response.topics += [_refusal(name, why) for name, why in refused.items()]
            return response

        return merged(answer, merge)

    return create_topics


def _refused(request: CreateTopicsRequest, decisions: Decisions) -> dict[str, str]:
    """Return the topics that the client may not create, and why. A name that is given twice is refused for that."""
    if decisions.suffices_on_cluster(AclOperation.CREATE):
        return {}
    times = Counter(topic.name for topic in request.topics)
    return {
        name: "Authorization failed."
        for name, count in times.items()
        if count == 1
        and name != CLUSTER_METADATA_TOPIC
        and not decisions.allows(AclOperation.CREATE, AclResourceType.TOPIC, name)
    }


def _refused_letters(request: CreateTopicsRequest, context: Context) -> dict[str, str]:
    """Return the topics whose dead letters would go where the client may not write, and why."""
    refused: dict[str, str] = {}
    for topic in request.topics:
        configs = {each.name: each.value for each in topic.configs}
        problem = refusal_of(Resource(ResourceType.TOPIC, topic.name), configs, context, {}) if configs else None
        if problem is not None:
            refused[topic.name] = problem
    return refused


def _described(topic: TopicAnswer, decisions: Decisions) -> TopicAnswer:
    """Hide the settings of a created topic from a client that may not describe them."""
    if topic.error_code or decisions.allows_now(AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, topic.name):
        return topic
    return TopicAnswer(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=topic.error_code,
        error_message=topic.error_message,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        configs=[],
    )


def _refusal(name: str, why: str) -> TopicAnswer:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return TopicAnswer(name=name, error_code=code, error_message=why, configs=[])
