"""ListConfigResources (key 74): names of the resources that have settings (formerly: of client-metrics resources).

v1   all kinds of resources; request + resource_types; response + resource_type
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int8, Int16, Int32, String


class ListConfigResourcesRequest(Request["ListConfigResourcesResponse"], key=74, versions="0-1", flexible="0+"):
    resource_types: list[Int8] = on("1+", [])


class ListConfigResourcesResponse(Response, key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16

    class ConfigResource(Struct):
        resource_name: String
        resource_type: Int8 = on("1+", 16)

    config_resources: list[ConfigResource]
