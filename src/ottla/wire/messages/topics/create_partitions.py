"""CreatePartitions (key 37): add partitions to topics.

v1   throttling happens after the answer
v2   flexible
v3   THROTTLING_QUOTA_EXCEEDED possible (KIP-599)
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int16, Int32, String


class CreatePartitionsRequest(Request["CreatePartitionsResponse"], key=37, versions="0-3", flexible="2+"):
    class Topic(Struct):
        name: String
        count: Int32

        class Assignment(Struct):
            broker_ids: list[Int32]

        assignments: list[Assignment] | None

    topics: list[Topic]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsResponse(Response, key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class TopicResult(Struct):
        name: String
        error_code: Int16
        error_message: String | None = None

    results: list[TopicResult]
