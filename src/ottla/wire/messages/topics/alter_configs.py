"""AlterConfigs (key 33): replace all dynamic settings of a resource at once (the legacy way).

v1   throttling happens after the answer
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int8, Int16, Int32, String


class AlterConfigsRequest(Request["AlterConfigsResponse"], key=33, versions="0-2", flexible="2+"):
    class Resource(Struct):
        resource_type: Int8
        resource_name: String

        class AlterableConfig(Struct):
            name: String
            value: String | None

        configs: list[AlterableConfig]

    resources: list[Resource]
    validate_only: Bool


class AlterConfigsResponse(Response, key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: Int32 = 0

    class ResourceResponse(Struct):
        error_code: Int16
        error_message: String | None
        resource_type: Int8
        resource_name: String

    responses: list[ResourceResponse]
