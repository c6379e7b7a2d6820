"""CreateAcls (key 30): add access control entries.

v1   prefixed resource patterns (KIP-290)
v2   flexible
v3   users as resources
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Int8, Int16, Int32, String


class CreateAclsRequest(Request["CreateAclsResponse"], key=30, versions="1-3", flexible="2+"):
    class AclCreation(Struct):
        resource_type: Int8
        resource_name: String
        resource_pattern_type: Int8 = 3
        principal: String
        host: String
        operation: Int8
        permission_type: Int8

    creations: list[AclCreation]


class CreateAclsResponse(Response, key=30, versions="1-3", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class AclCreationResult(Struct):
        error_code: Int16
        error_message: String | None

    results: list[AclCreationResult]
