"""Finds the request for which a Python frame runs: the watchdog names it when the event loop is held up."""

from __future__ import annotations

from types import CodeType, FrameType

from ottla.server.net.connection import Connection

_SERVE: CodeType = Connection._serve.__code__


def request_in_frame(frame: FrameType) -> str | None:
    """Return the API, version, client and connection of the request, if this is the frame of `Connection._serve`."""
    if frame.f_code is not _SERVE:
        return None
    values = frame.f_locals
    route, context = values["route"], values["self"].context
    address, port = context.connection.remote_address[:2]
    return f"{route.endpoint.name} v{route.version} of client {context.client_id[:100]!r} at {address}:{port}"
