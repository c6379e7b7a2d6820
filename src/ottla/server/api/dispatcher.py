"""Dispatcher: how the requests of one listener are dispatched: its routes, forwarding, quotas, and a test's
interception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ottla.server.api.context import Context
from ottla.server.api.dispatch import Route, Routes, Served
from ottla.server.api.forwarding.forwarding import Forwarding
from ottla.server.loop.later import Answer
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.server.api.slow_requests import SlowRequests

# Called by connections of a node under test in place of the handlers: answers by itself, or calls the handler.
Intercept: TypeAlias = Callable[[Served, Request[Response], Context], Answer[Any]]


class Dispatcher(NamedTuple):
    routes: Routes
    forwarding: Forwarding | None  # to the active controller; None if requests are never forwarded
    intercept: Intercept | None = None
    quotas: ClientQuotas | None = None  # of clients; None if they have none here
    slow: SlowRequests | None = None  # None if slow requests are not logged


def intercepted(
    intercept: Intercept,
    route: Route,
    forwarding: Forwarding | None,
    request: Request[Response],
    frame: memoryview,
    context: Context,
) -> Answer[Any]:
    """Return the answer of a test's `intercept`, which may call the handler or the forwarding in its place."""
    endpoint = route.endpoint
    if route.forwarded and forwarding is not None:
        kept = memoryview(bytes(frame))  # copied because the handler may be called later
        endpoint = endpoint._replace(handler=lambda asked, context: forwarding.handle(route, asked, kept, context))
    return intercept(endpoint, request, context)
