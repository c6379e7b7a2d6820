"""GetTelemetrySubscriptions (key 71): which of its metrics a client is to push, and how often (KIP-714).

Every client may ask, as with Kafka. ApiVersions offers it, and PushTelemetry, only on nodes that tell metrics.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.records.compress import Codec
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import NOTHING
from ottla.server.api.telemetry_caller import caller_of
from ottla.wire.messages.cluster.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

# In Kafka's order of preference.
_ACCEPTED = [int(codec) for codec in (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)]


@handles(GetTelemetrySubscriptionsRequest, needs=NOTHING)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: Context
) -> GetTelemetrySubscriptionsResponse:
    telemetry = context.telemetry
    if telemetry is None:
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    error, instance_id, wanted = telemetry.ask(request.client_instance_id, caller_of(context))
    if error is not ErrorCode.NONE:
        return _refuse(error)
    return GetTelemetrySubscriptionsResponse(
        error_code=0,
        client_instance_id=instance_id,
        subscription_id=wanted.id,
        accepted_compression_types=_ACCEPTED,
        push_interval_ms=wanted.interval_ms,
        telemetry_max_bytes=telemetry.bytes_max,
        delta_temporality=True,
        requested_metrics=list(wanted.metrics),
    )


def _refuse(error: ErrorCode) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(
        error_code=error,
        client_instance_id=NO_ID,
        subscription_id=0,
        accepted_compression_types=[],
        push_interval_ms=0,
        telemetry_max_bytes=0,
        delta_temporality=False,
        requested_metrics=[],
    )
