"""DeleteShareGroupOffsets (key 92): drop start offsets of a share group."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String, Uuid


class DeleteShareGroupOffsetsRequest(Request["DeleteShareGroupOffsetsResponse"], key=92, versions="0", flexible="0+"):
    group_id: String

    class Topic(Struct):
        topic_name: String

    topics: list[Topic]


class DeleteShareGroupOffsetsResponse(Response, key=92, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None

    class Topic(Struct):
        topic_name: String
        topic_id: Uuid
        error_code: Int16
        error_message: String | None = None

    responses: list[Topic]
