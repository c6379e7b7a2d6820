"""The guard of DescribeShareGroupOffsets, for the topics of each group: DESCRIBE.

Topics are left out if all are asked for, and refused if they are named. The group's own error comes first.
"""

from __future__ import annotations

import copy

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.guard.answers import Steps, kept, reviewed
from ottla.server.api.guard.checks import decisions_of, may_describe, sees
from ottla.server.api.guard.refusal import Paths, mirrored
from ottla.server.api.refusals import Handler
from ottla.server.loop.later import Answer
from ottla.server.loop.slices import Tally
from ottla.wire.messages.shares.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

Request = DescribeShareGroupOffsetsRequest
Response = DescribeShareGroupOffsetsResponse
Topic = DescribeShareGroupOffsetsResponse.Group.Topic

_TOPICS = Paths.between("topics.partitions", "topics.partitions:partition_index")
_REFUSED = {
    "start_offset": -1,
    "lag": -1,
    "error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "error_message": ErrorCode.TOPIC_AUTHORIZATION_FAILED.message,
}


def guard(handler: Handler) -> Handler:
    def describe(request: Request, context: Context) -> Answer[Response]:
        version, decisions = context.request_version, decisions_of(context)
        refused: list[list[Topic] | None] = []  # None: all topics were asked for
        some = copy.copy(request)
        some.groups = []
        for group in request.groups:
            part = copy.copy(group)
            if group.topics is not None:
                part.topics = [topic for topic in group.topics if may_describe(topic.topic_name, decisions)]
                rest = [topic for topic in group.topics if not may_describe(topic.topic_name, decisions)]
                refused.append(mirrored(rest, _TOPICS, Topic, version, _REFUSED))
            else:
                refused.append(None)
            some.groups.append(part)

        def review(response: Response) -> Steps[Response]:
            tally = Tally(limits.DECISIONS_PER_SLICE)
            for answer, told in zip(response.groups, refused, strict=True):
                if answer.error_code:
                    continue
                if told is None:
                    answer.topics = yield from kept(
                        answer.topics, lambda topic: sees(topic.topic_name, decisions), tally
                    )
                else:
                    answer.topics = [*answer.topics, *told]
            return response

        return reviewed(handler(some, context), review, context.runtime.slices)

    return describe
