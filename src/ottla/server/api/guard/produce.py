"""The guard of Produce: WRITE on each topic, and on the transactional id if there are transactional records.

This is the path that has to be quick: topics that are known to be writable cost one look into a set each, until the
rules change. What is known is of the context's present principal (`Context.principal`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import check_request
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.acknowledging import FIRST_VERSION_BY_ID
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import merged
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.guard.many import with_allowed
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer, Disconnect
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

Topic = ProduceRequest.TopicProduceData
TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = TopicResponse.PartitionProduceResponse


def guard(handler: Handler) -> Handler:
    # Each step of this function is paid for by each request. So it has nothing in it but the usual case, and no
    # functions of its own, for whose sake its variables would be put into cells.
    def produce(request: ProduceRequest, context: Context) -> Answer[ProduceResponse]:
        known, topics = context.known_decisions, request.topic_data
        if (
            known is not None
            and request.transactional_id is None
            and len(topics) == 1
            and (topics[0].name or topics[0].topic_id) in known.writable
            and known.silent.version == known.version
        ):
            return handler(request, context)
        return _decide(request, context, handler)

    return produce


def _decide(request: ProduceRequest, context: Context, handler: Handler) -> Answer[ProduceResponse]:
    """Decide by what is known, or else ask the authorizer, and remember what may be written."""
    id, topics = request.transactional_id, request.topic_data
    decisions = decisions_of(context)
    if decisions.silent.version == decisions.version and (id is None or id == decisions.producing):
        for topic in topics:
            if (topic.name or topic.topic_id) not in decisions.writable:
                break
        else:
            return handler(request, context)
    if id is not None:
        if decisions.allows(AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, id):
            decisions.note_producing(id)
        elif any(_is_transactional(each, context) for topic in topics for each in topic.partition_data):
            return _refuse(request, topics, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    names = [_name(topic, context) for topic in topics]
    if len(names) <= limits.DECISIONS_PER_SLICE:
        for name, topic in zip(names, topics, strict=True):
            if name and not decisions.allows(AclOperation.WRITE, AclResourceType.TOPIC, name):
                break
            if name:
                decisions.note_writable(topic.name or topic.topic_id)
        else:
            return handler(request, context)
    return with_allowed(
        dict.fromkeys(names),
        _may_write,
        lambda allowed: _produce(request, context, names, allowed, handler),
        context,
    )


def _is_transactional(data: Topic.PartitionProduceData, context: Context) -> bool:
    try:
        return check_request(
            data.records if data.records is not None else b"", context.request_version
        ).is_transactional
    except ApiError:
        return False  # and the handler refuses it


def _name(topic: Topic, context: Context) -> str:
    """Return the name of a topic; an id without a topic has none, and the handler refuses it."""
    if context.request_version < FIRST_VERSION_BY_ID:
        return topic.name
    return context.member.state.topic_name(topic.topic_id) or ""


def _may_write(decisions: Decisions, name: str) -> bool:
    return not name or decisions.allows(AclOperation.WRITE, AclResourceType.TOPIC, name)


def _produce(
    request: ProduceRequest, context: Context, names: list[str], allowed: set[str], handler: Handler
) -> Answer[ProduceResponse]:
    refused = [topic for topic, name in zip(request.topic_data, names, strict=True) if name not in allowed]
    if not refused:
        return handler(request, context)
    some = copy.copy(request)
    some.topic_data = [topic for topic, name in zip(request.topic_data, names, strict=True) if name in allowed]
    nothing = None if request.acks == 0 else ProduceResponse(responses=[])
    answer = handler(some, context) if some.topic_data else nothing
    told = _refuse(request, refused, ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def merge(response: ProduceResponse) -> ProduceResponse:
        response.responses += told.responses
        return response

    return merged(answer, merge)


def _refuse(request: ProduceRequest, topics: Iterable[Topic], code: ErrorCode) -> ProduceResponse:
    """Return the same error for all partitions. Without acks there is no answer, so the connection is closed; a topic
    without partitions has no error, as in Kafka.
    """
    topics = list(topics)
    if request.acks == 0 and any(topic.partition_data for topic in topics):
        raise Disconnect(f"a Produce without acks is refused: {code.name}")
    return ProduceResponse(
        responses=[
            TopicResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionResponse(index=each.index, error_code=code, base_offset=-1)
                    for each in topic.partition_data
                ],
            )
            for topic in topics
        ]
    )
