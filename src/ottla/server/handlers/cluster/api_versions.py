"""ApiVersions (key 18): which APIs this node serves, in which versions, and the cluster's features.

An unknown version of this request is answered in version 0 with UNSUPPORTED_VERSION (KIP-511): see `Connection`. APIs
of our own are told to our own clients only: all others see what a Kafka answers (ADR 0048).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ottla.cluster.features import KRAFT_VERSION, SUPPORTED_FEATURES
from ottla.model.errors import ErrorCode
from ottla.model.settings.own import OTTLA_OTEL_TRACES_RATIO
from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import NOTHING
from ottla.wire.api import FIRST_OWN_KEY, OWN_CLIENT
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

# The client names and versions that Kafka accepts; request versions 0 to 2 do not have them.
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FIRST_VERSION_WITH_SOFTWARE = ApiVersionsRequest.since("client_software_name")
# Older clients cannot read a feature whose lowest level is 0.
_FIRST_VERSION_WITH_LEVEL_0 = 4
PRODUCE = 0
# GetTelemetrySubscriptions and PushTelemetry are offered where somebody is told what clients push (ADR 0047).
TELEMETRY = (71, 72)
# Kafka serves Produce from version 3 but reports 0, because librdkafka before 2.11 takes a higher minimum for a sign of
# an old broker without compression (KAFKA-18659). A client that really sends an older version is disconnected.
TOLD_MINIMUM = {PRODUCE: 0}


@handles(ApiVersionsRequest, needs=NOTHING, on="both")
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    if context.request_version >= FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    if context.request_version >= FIRST_VERSION_WITH_SOFTWARE:
        context.client_software = request.client_software_name, request.client_software_version
    served = SERVED_TO_CONTROLLERS if context.connection.controller else SERVED
    is_ours = request.client_software_name == OWN_CLIENT
    return ApiVersionsResponse(
        error_code=0,
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=TOLD_MINIMUM.get(key, low), max_version=high)
            for key, (low, high) in served.items()
            if key < FIRST_OWN_KEY or is_ours
            if key not in TELEMETRY or context.telemetry is not None
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in SUPPORTED_FEATURES.items()
            # Responses before version 4 cannot have a minimum of 0: such features are left out.
            if low > 0 or context.request_version >= _FIRST_VERSION_WITH_LEVEL_0
        ],
        finalized_features_epoch=context.member.metadata.features_epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in _finalized(context).items()
        ],
        traces=is_ours and context.settings[OTTLA_OTEL_TRACES_RATIO] > 0,
    )


def _finalized(context: Context) -> Mapping[str, int]:
    """Return the features of the cluster, and that of the quorum, which has its own records; level 0 is left out."""
    features = context.member.state.features
    level = context.member.quorum.kraft_version
    return {**features, KRAFT_VERSION: level} if level else features
