"""The guard of Metadata. Topics that the client may not describe are left out where it asks for all, and refused where
it names them, by name or id.

A missing topic is created only for a client that may CREATE it, or any topic in the cluster.
"""

from __future__ import annotations

import copy

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.names import is_internal
from ottla.model.settings.node import AUTO_CREATE_TOPICS_ENABLE
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import Steps, kept, merged, reviewed
from ottla.server.api.guard.checks import decisions_of, may_describe, sees
from ottla.server.api.guard.many import with_allowed
from ottla.server.api.metadata_request import is_by_id, is_for_all, is_malformed, without_ignored_names
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

Ask = MetadataRequest.Topic
TopicAnswer = MetadataResponse.Topic


def guard(handler: Handler) -> Handler:
    def metadata(request: MetadataRequest, context: Context) -> Answer[MetadataResponse]:
        version, topics = context.request_version, request.topics
        if is_for_all(request, version):
            decisions = decisions_of(context)
            return reviewed(
                handler(request, context), lambda response: _described(response, decisions), context.runtime.slices
            )
        if not topics or is_malformed(request, version):
            return handler(request, context)
        meant, by_id = without_ignored_names(request), is_by_id(request)
        each = map(_Asked, meant.topics or ())
        asked = {topic: name for topic in each if (name := topic.name(by_id, context)) is not None}
        return with_allowed(
            dict.fromkeys(asked.values()),
            lambda decisions, name: may_describe(name, decisions),
            lambda allowed: _answer(meant, context, asked, allowed, by_id, handler),
            context,
        )

    return metadata


class _Asked:
    """A topic in the request, which is asked for by name or by id."""

    __slots__ = ("ask",)

    def __init__(self, ask: Ask) -> None:
        self.ask = ask

    def name(self, by_id: bool, context: Context) -> str | None:
        """Return the topic's name; None if nothing is known of it, so that nothing can be refused."""
        return context.member.state.topic_name(self.ask.topic_id) if by_id else self.ask.name


def _described(response: MetadataResponse, decisions: Decisions) -> Steps[MetadataResponse]:
    """Leave out the topics that the client may not describe."""
    response.topics = yield from kept(
        response.topics, lambda topic: sees(topic.name or "", decisions), Tally(limits.DECISIONS_PER_SLICE)
    )
    return response


def _answer(
    request: MetadataRequest,
    context: Context,
    asked: dict[_Asked, str],
    allowed: set[str],
    by_id: bool,
    handler: Handler,
) -> Answer[MetadataResponse]:
    assert request.topics is not None, "these are named"
    uncreated = _not_to_be_created(request, allowed, context) if not by_id else set()
    refused = {each.ask.topic_id if by_id else name for each, name in asked.items() if name not in allowed}
    if not refused and not uncreated:
        return handler(request, context)
    some = copy.copy(request)
    some.topics = [
        topic
        for topic in request.topics
        if (topic.topic_id if by_id else topic.name) not in refused and topic.name not in uncreated
    ]
    told = [_refusal(name, internal=is_internal(name)) for name in uncreated]
    told += [_refusal(None, each) if isinstance(each, bytes) else _refusal(each) for each in dict.fromkeys(refused)]
    if not is_for_all(some, context.request_version):
        return merged(handler(some, context), lambda response: _merge(response, response.topics, told))
    # Without topics this request would ask for all. So the handler gets the refused ones, and its answers are dropped.
    some.topics, some.allow_auto_topic_creation = request.topics, False
    return merged(handler(some, context), lambda response: _merge(response, [], told))


def _merge(response: MetadataResponse, topics: list[TopicAnswer], told: list[TopicAnswer]) -> MetadataResponse:
    response.topics = [*topics, *told]
    return response


def _not_to_be_created(request: MetadataRequest, allowed: set[str], context: Context) -> set[str]:
    """Return the missing topics that this request would create, and whose creation is not allowed."""
    if not request.allow_auto_topic_creation or not context.settings[AUTO_CREATE_TOPICS_ENABLE]:
        return set()
    missing = [name for name in allowed if name not in context.member.state.topics]
    decisions = decisions_of(context)
    if not missing or decisions.suffices_on_cluster(AclOperation.CREATE):
        return set()
    return {name for name in missing if not decisions.allows(AclOperation.CREATE, AclResourceType.TOPIC, name)}


def _refusal(name: str | None, topic_id: bytes = NO_ID, *, internal: bool = False) -> TopicAnswer:
    return TopicAnswer(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        name=name,
        topic_id=topic_id,
        is_internal=internal,
        partitions=[],
    )
