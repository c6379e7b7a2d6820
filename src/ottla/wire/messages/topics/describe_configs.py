"""DescribeConfigs (key 32): settings of topics, brokers and other resources, with where each value comes from.

v2   throttling happens after the answer
v3   request + include_documentation; response + config_type, documentation
v4   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int8, Int16, Int32, String


class DescribeConfigsRequest(Request["DescribeConfigsResponse"], key=32, versions="1-4", flexible="4+"):
    class Resource(Struct):
        resource_type: Int8
        resource_name: String
        configuration_keys: list[String] | None

    resources: list[Resource]
    include_synonyms: Bool = False
    include_documentation: Bool = on("3+", False)


class DescribeConfigsResponse(Response, key=32, versions="1-4", flexible="4+"):
    throttle_time_ms: Int32 = 0

    class Result(Struct):
        error_code: Int16
        error_message: String | None
        resource_type: Int8
        resource_name: String

        class ResourceResult(Struct):
            name: String
            value: String | None
            read_only: Bool
            config_source: Int8 = -1
            is_sensitive: Bool

            class Synonym(Struct):
                name: String
                value: String | None
                source: Int8

            synonyms: list[Synonym]
            config_type: Int8 = on("3+", 0)
            documentation: String | None = on("3+", "")

        configs: list[ResourceResult]

    results: list[Result]
