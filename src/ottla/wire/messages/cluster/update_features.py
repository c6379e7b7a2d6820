"""UpdateFeatures (key 57): raise or lower finalized feature levels.

v1   dry runs, kinds of upgrade; request + upgrade_type, validate_only - allow_downgrade
v2   one error for all; response - results
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int8, Int16, Int32, String


class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"], key=57, versions="0-2", flexible="0+"):
    timeout_ms: Int32 = 60000

    class FeatureUpdateKey(Struct):
        feature: String
        max_version_level: Int16
        allow_downgrade: Bool = on("0", False)
        upgrade_type: Int8 = on("1+", 1)

    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = on("1+", False)


class UpdateFeaturesResponse(Response, key=57, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None

    class UpdatableFeatureResult(Struct):
        feature: String
        error_code: Int16
        error_message: String | None

    results: list[UpdatableFeatureResult] = on("0-1", [])
