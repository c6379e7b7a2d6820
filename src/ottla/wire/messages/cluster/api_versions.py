"""ApiVersions (key 18): the APIs, versions and features of a node; the first request of every client.

v1   response + throttle_time_ms
v2   throttling happens after the answer
v3   flexible; request + client_software_name, client_software_version; response + supported_features,
     finalized_features_epoch, finalized_features, zk_migration_ready
v4   features with minimum level 0 are shown
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int16, Int32, Int64, String


class ApiVersionsRequest(Request["ApiVersionsResponse"], key=18, versions="0-4", flexible="3+"):
    client_software_name: String = on("3+", "")
    client_software_version: String = on("3+", "")


class ApiVersionsResponse(Response, key=18, versions="0-4", flexible="3+"):
    error_code: Int16

    class ApiVersion(Struct):
        api_key: Int16
        min_version: Int16
        max_version: Int16

    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = on("1+", 0)

    class SupportedFeatureKey(Struct):
        name: String
        min_version: Int16
        max_version: Int16

    supported_features: list[SupportedFeatureKey] = on("3+", [], tag=0)
    finalized_features_epoch: Int64 = on("3+", -1, tag=1)

    class FinalizedFeatureKey(Struct):
        name: String
        max_version_level: Int16
        min_version_level: Int16

    finalized_features: list[FinalizedFeatureKey] = on("3+", [], tag=2)
    zk_migration_ready: Bool = on("3+", False, tag=3)
    traces: Bool = on("3+", False, tag=10_000)  # for our nodes: whether RequestHeader.trace_parent is of use here
