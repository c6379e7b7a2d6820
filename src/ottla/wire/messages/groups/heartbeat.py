"""Heartbeat (key 12): a classic-group member says it is alive.

v1   response + throttle_time_ms
v2   throttling happens after the answer
v3   static members (KIP-345); request + group_instance_id
v4   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, on
from ottla.wire.types import Int16, Int32, String


class HeartbeatRequest(Request["HeartbeatResponse"], key=12, versions="0-4", flexible="4+"):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = on("3+", None)


class HeartbeatResponse(Response, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: Int32 = on("1+", 0)
    error_code: Int16
