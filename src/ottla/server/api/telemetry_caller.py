"""The client of a connection, as client telemetry matches it with subscriptions."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.api.security.counted_for import counted_for
from ottla.server.telemetry.client_telemetry import TelemetryCaller


def caller_of(context: Context) -> TelemetryCaller:
    address = context.connection.remote_address
    return TelemetryCaller(
        context.client_id, counted_for(context), context.client_software, address, context.when_closed
    )
