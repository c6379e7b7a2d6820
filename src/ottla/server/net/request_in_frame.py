"""Finds the request for which a Python frame runs: the watchdog names it when the event loop is held up."""

from __future__ import annotations

from types import CodeType, FrameType

from ottla.server.net.connection import ServerConnection

_SERVE: CodeType = ServerConnection._serve.__code__


def request_in_frame(frame: FrameType) -> str | None:
    """Return the API, version, client and connection of a request, if the frame is one of `ServerConnection._serve`."""
    if frame.f_code is not _SERVE:
        return None
    values = frame.f_locals
    route, context = values["route"], values["self"].context
    address, port = context.connection.remote_address[:2]
    return f"{route.endpoint.name} v{route.version} of client {context.client_id[:100]!r} at {address}:{port}"
