"""PushTelemetry (key 72): a client sends its metrics (KIP-714)."""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Bool, Bytes, Int8, Int16, Int32, Uuid


class PushTelemetryRequest(Request["PushTelemetryResponse"], key=72, versions="0", flexible="0+"):
    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Response, key=72, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
