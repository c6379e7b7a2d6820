"""DeleteTopics (key 20): delete topics by name or id.

v2   throttling happens after the answer
v3   TOPIC_DELETION_DISABLED possible
v4   flexible
v5   THROTTLING_QUOTA_EXCEEDED possible (KIP-599); response + error_message
v6   topics by id; request + topics - topic_names; response + topic_id null name
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import NO_ID, Int16, Int32, String, Uuid


class DeleteTopicsRequest(Request["DeleteTopicsResponse"], key=20, versions="1-6", flexible="4+"):
    class DeleteTopicState(Struct):
        name: String | None = None
        topic_id: Uuid

    topics: list[DeleteTopicState] = on("6+", [])
    topic_names: list[String] = on("0-5", [])
    timeout_ms: Int32


class DeleteTopicsResponse(Response, key=20, versions="1-6", flexible="4+"):
    throttle_time_ms: Int32 = 0

    class DeletableTopicResult(Struct):
        name: String | None = on("0+", "", nullable="6+")
        topic_id: Uuid = on("6+", NO_ID)
        error_code: Int16
        error_message: String | None = on("5+", None)

    responses: list[DeletableTopicResult]
