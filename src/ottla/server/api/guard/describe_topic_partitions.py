"""The guard of DescribeTopicPartitions: topics that the client names and may not describe are refused.

Where it asks for all, the handler leaves out what it does not see, page by page: so a page has as many partitions as
the client asked for.
"""

from __future__ import annotations

import copy

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import merged
from ottla.server.api.guard.checks import may_describe
from ottla.server.api.guard.many import with_allowed
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.wire.messages.topics.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

Request = DescribeTopicPartitionsRequest
Response = DescribeTopicPartitionsResponse
TopicAnswer = DescribeTopicPartitionsResponse.Topic


def guard(handler: Handler) -> Handler:
    def describe(request: Request, context: Context) -> Answer[Response]:
        cursor = request.cursor
        first = "" if cursor is None else cursor.topic_name
        named = dict.fromkeys(topic.name for topic in request.topics)
        if cursor is not None and (cursor.partition_index < 0 or (named and first not in named)):
            return handler(request, context)  # which refuses it
        if not named:
            return handler(request, context)
        names = [name for name in named if name >= first]
        return with_allowed(
            names,
            lambda decisions, name: may_describe(name, decisions),
            lambda allowed: _answer(request, context, names, allowed, handler),
            context,
        )

    return describe


def _answer(
    request: Request, context: Context, named: list[str], allowed: set[str], handler: Handler
) -> Answer[Response]:
    """Describe the allowed topics and refuse the other named ones."""
    refused = [_refusal(name) for name in named if name not in allowed]
    some = copy.copy(request)
    some.topics = [topic for topic in request.topics if topic.name in allowed]
    if request.cursor is not None and request.cursor.topic_name not in allowed:
        some.cursor = None
    answer = handler(some, context) if allowed else Response(topics=[])

    def merge(response: Response) -> Response:
        response.topics += refused
        return response

    return merged(answer, merge)


def _refusal(name: str) -> TopicAnswer:
    return TopicAnswer(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=NO_ID, is_internal=False, partitions=[]
    )
