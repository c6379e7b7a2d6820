"""The client of a connection, as client telemetry matches it with subscriptions."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.telemetry.client_telemetry import TelemetryCaller


def caller_of(context: Context) -> TelemetryCaller:
    return TelemetryCaller(
        context.client_id, context.client_software, context.connection.remote_address, context.when_closed
    )
