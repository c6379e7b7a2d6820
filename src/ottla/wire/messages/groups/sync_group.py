"""SyncGroup (key 14): the leader of a classic group hands in the assignment, every member gets its part.

v1   response + throttle_time_ms
v2   throttling happens after the answer
v3   static members (KIP-345); request + group_instance_id
v4   flexible
v5   request + protocol_type, protocol_name; response + protocol_type, protocol_name
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bytes, Int16, Int32, String


class SyncGroupRequest(Request["SyncGroupResponse"], key=14, versions="0-5", flexible="4+"):
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = on("3+", None)
    protocol_type: String | None = on("5+", None)
    protocol_name: String | None = on("5+", None)

    class Assignment(Struct):
        member_id: String
        assignment: Bytes

    assignments: list[Assignment]


class SyncGroupResponse(Response, key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = on("1+", 0)
    error_code: Int16
    protocol_type: String | None = on("5+", None)
    protocol_name: String | None = on("5+", None)
    assignment: Bytes
