"""DescribeAcls (key 29): list access control entries that match a filter.

v1   prefixed resource patterns (KIP-290)
v2   flexible
v3   users as resources
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int8, Int16, Int32, String


class DescribeAclsRequest(Request["DescribeAclsResponse"], key=29, versions="1-3", flexible="2+"):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DescribeAclsResponse(Response, key=29, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None

    class Resource(Struct):
        resource_type: Int8
        resource_name: String
        pattern_type: Int8 = 3

        class AclDescription(Struct):
            principal: String
            host: String
            operation: Int8
            permission_type: Int8

        acls: list[AclDescription]

    resources: list[Resource]
