"""Dispatcher: where the requests of a listener go: which routes there are, and who stands before the handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ottla.server.api.context import Context
from ottla.server.api.dispatch import Route, Served
from ottla.server.api.forwarding import Forwarding
from ottla.wire.message import Request

# Stands between the connections and the handlers of a node under test: answers in their place, or calls them.
Intercept: TypeAlias = Callable[[Served, Any, Context], Any]


class Dispatcher(NamedTuple):
    route: Callable[[int, int], Route | None]  # of an API key and a version; None: not served here
    forwarding: Forwarding | None  # the way to the active controller; None where requests are never passed on
    intercept: Intercept | None = None


def intercepted(
    intercept: Intercept,
    route: Route,
    forwarding: Forwarding | None,
    request: Request,
    frame: memoryview,
    context: Context,
) -> Any:
    """The answer of a test that stands before the handler, and before the way to another node's."""
    endpoint = route.endpoint
    if route.forwarded and forwarding is not None:
        kept = memoryview(bytes(frame))  # the handler may be called later
        endpoint = endpoint._replace(handler=lambda asked, context: forwarding.handle(route, asked, kept, context))
    return intercept(endpoint, request, context)
