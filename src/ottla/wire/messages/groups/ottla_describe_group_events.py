"""OttlaDescribeGroupEvents (key 30000): what a group's coordinator remembers of the group. Kafka has no such API (ADR
0048).

v0   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, Int64, String


class OttlaDescribeGroupEventsRequest(
    Request["OttlaDescribeGroupEventsResponse"], key=30000, versions="0", flexible="0+"
):
    group_id: String


class OttlaDescribeGroupEventsResponse(Response, key=30000, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    node_id: Int32 = -1  # of the coordinator
    now_ms: Int64 = -1  # the coordinator's time
    since_ms: Int64 = -1  # when it took over the group; it knows nothing from before

    class Event(Struct):
        at_ms: Int64
        kind: String
        epoch: Int32
        members: Int32
        member_id: String
        instance_id: String | None
        client_id: String
        client_host: String
        setting: String
        setting_value: Int64
        detail: String
        duration_ms: Int64
        times: Int32

    events: list[Event]
