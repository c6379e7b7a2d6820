"""DescribeGroups (key 15): state, members and assignments of classic groups.

v1   response + throttle_time_ms
v2   throttling happens after the answer
v3   request + include_authorized_operations; response + authorized_operations
v4   response + group_instance_id
v5   flexible
v6   GROUP_ID_NOT_FOUND instead of a dead group (KIP-1043); response + error_message
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Bytes, Int16, Int32, String


class DescribeGroupsRequest(Request["DescribeGroupsResponse"], key=15, versions="0-6", flexible="5+"):
    groups: list[String]
    include_authorized_operations: Bool = on("3+", False)


class DescribeGroupsResponse(Response, key=15, versions="0-6", flexible="5+"):
    throttle_time_ms: Int32 = on("1+", 0)

    class DescribedGroup(Struct):
        error_code: Int16
        error_message: String | None = on("6+", None)
        group_id: String
        group_state: String
        protocol_type: String
        protocol_data: String

        class DescribedGroupMember(Struct):
            member_id: String
            group_instance_id: String | None = on("4+", None)
            client_id: String
            client_host: String
            member_metadata: Bytes
            member_assignment: Bytes

        members: list[DescribedGroupMember]
        authorized_operations: Int32 = on("3+", -0x80000000)

    groups: list[DescribedGroup]
