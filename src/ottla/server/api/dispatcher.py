"""Dispatcher: how the requests of one listener are dispatched: its routes, forwarding, quotas, and a test's
interception or tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from ottla.server.api.context import Context
from ottla.server.api.dispatch import Route, Routes, Served
from ottla.server.api.forwarding.forwarding import Forwarding
from ottla.server.loop.later import Answer
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.server.api.slow_requests import SlowRequests

# What a test gives: it answers by itself, or calls the handler.
Intercept: TypeAlias = Callable[[Served, Request[Response], Context], Answer[Any]]


class RequestInTurn(Protocol):
    """A connection, as far as the handling of the request that it is at needs it. Times are by `clock_s`."""

    context: Context
    begun_s: float  # when the request was begun
    late_s: float  # when the requests in the buffer, this one among them, will have waited for NOTICED_S


# Called by connections in place of the handlers.
Around: TypeAlias = Callable[[Route, "Forwarding | None", Request[Response], memoryview, RequestInTurn], Answer[Any]]


class Dispatcher(NamedTuple):
    routes: Routes
    forwarding: Forwarding | None  # to the active controller; None if requests are never forwarded
    around: Around | None = None  # in place of the handlers: a test's interception, tracing
    quotas: ClientQuotas | None = None  # of clients; None if they have none here
    slow: SlowRequests | None = None  # None if slow requests are not logged


def handled(
    route: Route, forwarding: Forwarding | None, request: Request[Response], frame: memoryview, turn: RequestInTurn
) -> Answer[Any]:
    """Return what a connection without an `around` would answer."""
    if route.forwarded and forwarding is not None:
        return forwarding.handle(route, request, frame, turn.context)
    return route.handler(request, turn.context)


def intercepting(intercept: Intercept) -> Around:
    """Return what has a test's `intercept` answer, which may call the handler or the forwarding in its place."""

    def intercepted(
        route: Route, forwarding: Forwarding | None, request: Request[Response], frame: memoryview, turn: RequestInTurn
    ) -> Answer[Any]:
        endpoint = route.endpoint
        if route.forwarded and forwarding is not None:
            kept = memoryview(bytes(frame))  # copied because the handler may be called later
            endpoint = endpoint._replace(handler=lambda asked, context: forwarding.handle(route, asked, kept, context))
        return intercept(endpoint, request, turn.context)

    return intercepted
