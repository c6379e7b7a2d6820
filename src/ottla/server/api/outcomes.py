"""The outcome of a handler's answer, for callers that await it instead of passing it to a connection."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar, cast

from ottla.client.errors import ClientError
from ottla.server.api import dispatch
from ottla.server.api.api_table import SERVED_TO_CONTROLLERS
from ottla.server.api.context import Context, Facades, Peer
from ottla.server.api.refusals import Outcome
from ottla.server.loop.later import Answer, AnswerFailed, Large
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response

ResponseT = TypeVar("ResponseT", bound=Response)

_HERE = ("127.0.0.1", 0)


async def outcome_of(answer: Answer[Outcome]) -> Outcome:
    """Return the response or `NotController`. Raises AnswerFailed."""
    found = await answer if isinstance(answer, Awaitable) else answer
    assert found is not None, "a request to the controller is answered"
    return found.response if isinstance(found, Large) else found


async def handle_as_controller(facades: Facades, request: Request[ResponseT]) -> ResponseT | NotController:
    """Handle a request of this node to itself as the active controller; return the response or `NotController`."""
    key = type(request).key
    version = SERVED_TO_CONTROLLERS[key][1]
    route = dispatch.CONTROLLER_ROUTES.find(key, version)
    assert route is not None, "the table has it"
    context = Context(facades, Peer("", _HERE, _HERE, controller=True))
    context.request_version = version
    try:
        outcome = await outcome_of(route.endpoint.decide(request, context))
    except AnswerFailed:
        raise ClientError(f"{type(request).name} failed") from None
    return cast("ResponseT | NotController", outcome)  # the handler of the request made it
