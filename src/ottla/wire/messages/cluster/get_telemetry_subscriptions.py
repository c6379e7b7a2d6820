"""GetTelemetrySubscriptions (key 71): a client asks which of its metrics the cluster wants (KIP-714)."""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Bool, Int8, Int16, Int32, String, Uuid


class GetTelemetrySubscriptionsRequest(
    Request["GetTelemetrySubscriptionsResponse"], key=71, versions="0", flexible="0+"
):
    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Response, key=71, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: list[Int8]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: list[String]
