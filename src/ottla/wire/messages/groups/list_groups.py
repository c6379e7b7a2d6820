"""ListGroups (key 16): the groups this broker coordinates.

v1   response + throttle_time_ms
v2   throttling happens after the answer
v3   flexible
v4   request + states_filter; response + group_state
v5   request + types_filter; response + group_type
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int16, Int32, String


class ListGroupsRequest(Request["ListGroupsResponse"], key=16, versions="0-5", flexible="3+"):
    states_filter: list[String] = on("4+", [])
    types_filter: list[String] = on("5+", [])


class ListGroupsResponse(Response, key=16, versions="0-5", flexible="3+"):
    throttle_time_ms: Int32 = on("1+", 0)
    error_code: Int16

    class ListedGroup(Struct):
        group_id: String
        protocol_type: String
        group_state: String = on("4+", "")
        group_type: String = on("5+", "")

    groups: list[ListedGroup]
