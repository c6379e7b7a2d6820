"""DeleteAcls (key 31): remove access control entries that match filters.

v1   prefixed resource patterns (KIP-290)
v2   flexible
v3   users as resources
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int8, Int16, Int32, String


class DeleteAclsRequest(Request["DeleteAclsResponse"], key=31, versions="1-3", flexible="2+"):
    class Filter(Struct):
        resource_type_filter: Int8
        resource_name_filter: String | None
        pattern_type_filter: Int8 = 3
        principal_filter: String | None
        host_filter: String | None
        operation: Int8
        permission_type: Int8

    filters: list[Filter]


class DeleteAclsResponse(Response, key=31, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class FilterResult(Struct):
        error_code: Int16
        error_message: String | None

        class MatchingAcl(Struct):
            error_code: Int16
            error_message: String | None
            resource_type: Int8
            resource_name: String
            pattern_type: Int8 = 3
            principal: String
            host: String
            operation: Int8
            permission_type: Int8

        matching_acls: list[MatchingAcl]

    filter_results: list[FilterResult]
