"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single settings of a resource.

v1   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int8, Int16, Int32, String


class IncrementalAlterConfigsRequest(Request["IncrementalAlterConfigsResponse"], key=44, versions="0-1", flexible="1+"):
    class AlterConfigsResource(Struct):
        resource_type: Int8
        resource_name: String

        class AlterableConfig(Struct):
            name: String
            config_operation: Int8
            value: String | None

        configs: list[AlterableConfig]

    resources: list[AlterConfigsResource]
    validate_only: Bool


class IncrementalAlterConfigsResponse(Response, key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: Int32 = 0

    class AlterConfigsResourceResponse(Struct):
        error_code: Int16
        error_message: String | None
        resource_type: Int8
        resource_name: String

    responses: list[AlterConfigsResourceResponse]
