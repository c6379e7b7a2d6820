"""PushTelemetry (key 72): a client pushes its metrics, perhaps compressed (KIP-714).

THROTTLING_QUOTA_EXCEEDED: it is too early; UNKNOWN_SUBSCRIPTION_ID: the client has to ask again; INVALID_REQUEST: it
has said before that it terminates; INVALID_RECORD: what it pushed cannot be read.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import NOTHING
from ottla.server.api.telemetry_caller import caller_of
from ottla.server.loop.later import Answer, Later
from ottla.server.telemetry.client_telemetry import TelemetryPush
from ottla.wire.messages.cluster.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


@handles(PushTelemetryRequest, needs=NOTHING)
def push_telemetry(request: PushTelemetryRequest, context: Context) -> Answer[PushTelemetryResponse]:
    telemetry = context.telemetry
    if telemetry is None:
        return _answer(ErrorCode.UNSUPPORTED_VERSION)
    push = TelemetryPush(
        request.subscription_id, request.compression_type, request.metrics, is_last=request.terminating
    )
    taken = telemetry.push(request.client_instance_id, caller_of(context), push)
    return taken.map(_answer) if isinstance(taken, Later) else _answer(taken)


def _answer(error: ErrorCode) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error)
