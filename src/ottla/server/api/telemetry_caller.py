"""The client of a connection, as client telemetry matches it with subscriptions."""

from __future__ import annotations

from ottla.server.api.context import Context
from ottla.server.telemetry.client_telemetry import Caller


def caller_of(context: Context) -> Caller:
    return Caller(context.client_id, context.client_software, context.connection.remote_address, context.when_closed)
