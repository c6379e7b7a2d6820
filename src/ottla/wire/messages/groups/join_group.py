"""JoinGroup (key 11): enter a classic group; the answer comes when the group's generation has formed.

v1   request + rebalance_timeout_ms
v2   response + throttle_time_ms
v3   throttling happens after the answer
v4   MEMBER_ID_REQUIRED before a new member may join (KIP-394)
v5   static members (KIP-345); request + group_instance_id; response + group_instance_id
v6   flexible
v7   response + protocol_type null protocol_name
v8   reasons (KIP-800); request + reason
v9   the leader may be told to skip assigning (KIP-814); response + skip_assignment
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Bytes, Int16, Int32, String


class JoinGroupRequest(Request["JoinGroupResponse"], key=11, versions="0-9", flexible="6+"):
    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = on("1+", -1)
    member_id: String
    group_instance_id: String | None = on("5+", None)
    protocol_type: String

    class Protocol(Struct):
        name: String
        metadata: Bytes

    protocols: list[Protocol]
    reason: String | None = on("8+", None)


class JoinGroupResponse(Response, key=11, versions="0-9", flexible="6+"):
    throttle_time_ms: Int32 = on("2+", 0)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: String | None = on("7+", None)
    protocol_name: String | None = on("0+", "", nullable="7+")
    leader: String
    skip_assignment: Bool = on("9+", False)
    member_id: String

    class Member(Struct):
        member_id: String
        group_instance_id: String | None = on("5+", None)
        metadata: Bytes

    members: list[Member]
