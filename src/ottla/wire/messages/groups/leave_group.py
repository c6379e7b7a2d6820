"""LeaveGroup (key 13): members leave a classic group at once instead of timing out.

v1   response + throttle_time_ms
v2   throttling happens after the answer
v3   many members at once, by instance id too; request + members - member_id; response + members
v4   flexible
v5   reasons (KIP-800); request + reason
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, String


class LeaveGroupRequest(Request["LeaveGroupResponse"], key=13, versions="0-5", flexible="4+"):
    group_id: String
    member_id: String = on("0-2", "")

    class MemberIdentity(Struct):
        member_id: String
        group_instance_id: String | None = None
        reason: String | None = on("5+", None)

    members: list[MemberIdentity] = on("3+", [])


class LeaveGroupResponse(Response, key=13, versions="0-5", flexible="4+"):
    throttle_time_ms: Int32 = on("1+", 0)
    error_code: Int16

    class MemberResponse(Struct):
        member_id: String
        group_instance_id: String | None
        error_code: Int16

    members: list[MemberResponse] = on("3+", [])
