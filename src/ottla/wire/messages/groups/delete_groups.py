"""DeleteGroups (key 42): delete empty groups with their offsets.

v1   throttling happens after the answer
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int16, Int32, String


class DeleteGroupsRequest(Request["DeleteGroupsResponse"], key=42, versions="0-2", flexible="2+"):
    groups_names: list[String]


class DeleteGroupsResponse(Response, key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class DeletableGroupResult(Struct):
        group_id: String
        error_code: Int16

    results: list[DeletableGroupResult]
