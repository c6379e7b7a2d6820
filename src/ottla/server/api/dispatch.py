"""From (API key, version) to a handler, and from what it returns to bytes: the only table of served APIs.

`@handles` is the one registration; `make docs` derives the table `server/api/api_table.py` from it, so that a node can
say what it serves without importing all handlers: each is imported by the first request of its kind. A `Route` binds
everything one (key, version) needs, made on first use, so that a request costs one dictionary look-up.

Clients and controllers come in by different listeners, which serve different APIs; some are served by both. What
changes the cluster is `forwarded`: a node that is not the active controller passes the request on to the one that is
(see `server/api/forwarding.py`), so its handler only ever runs where the decision is made.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping
from functools import partial, wraps
from typing import Any, Literal, NamedTuple, TypeVar, overload

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import ELEMENTS_AT_ONCE_MAX
from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.server.api.context import Context
from ottla.server.api.portions import Portions, in_portions
from ottla.server.api.refusals import Handler, Refusing
from ottla.server.loop.later import Answer, Disconnect
from ottla.server.quorum.active_controller import Decided
from ottla.wire import api, compile, header
from ottla.wire.compile import WireError
from ottla.wire.frame import framed, framed_in_steps
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Response)
Listeners = Literal["broker", "controller", "both"]

# The folders of the handlers that ask coordinators.
_COORDINATED = ("groups.", "txns.", "shares.")


class Served(NamedTuple):
    """One served API and the versions it is served in."""

    key: int
    name: str
    low: int
    high: int
    handler: Handler
    request: type[Request]
    on: Listeners = "broker"
    forwarded: bool = False
    few: bool = False  # elements, always
    refusing: Refusing[Any] | None = None  # where the active controller decides

    def decide(self, request: Any, context: Context) -> Answer[Any]:
        """The handler's answer for those who can ask another node: the response, or `NotController`."""
        return self.handler(request, context) if self.refusing is None else self.refusing.decide(request, context)

    def refused(self, request: Any, context: Context, error: ApiError) -> Answer[Any]:
        """The response that says that all of the request was refused with `error`. The quorum's own APIs have no such
        response: theirs says what this node knows."""
        if self.refusing is None:
            return self.handler(request, context)
        return self.refusing.refused(request, context, error)


ENDPOINTS: dict[int, Served] = {}  # of the handlers that were imported
_NOT_SERVED = (0, -1)
_routes: dict[int, Route] = {}
_controller_routes: dict[int, Route] = {}


@overload
def handles(
    request: type[RequestT],
    versions: str | None = None,
    *,
    on: Listeners = "broker",
    forwarded: bool = False,
    portions: Portions | None = None,
    few: bool = False,
) -> Callable[[Callable[[RequestT, Context], Answer[ResponseT]]], Callable[[RequestT, Context], Answer[ResponseT]]]: ...


@overload
def handles(
    request: type[RequestT],
    versions: str | None = None,
    *,
    on: Listeners = "broker",
    forwarded: bool = False,
    portions: Portions | None = None,
    few: bool = False,
    refuse: Callable[[RequestT, ApiError], ResponseT],
    check: Callable[[RequestT, Context], None] | None = None,
) -> Callable[
    [Callable[[RequestT, Context], Decided[ResponseT]]], Callable[[RequestT, Context], Decided[ResponseT]]
]: ...


def handles(
    request: type[Any],
    versions: str | None = None,
    *,
    on: Listeners = "broker",
    forwarded: bool = False,
    portions: Portions | None = None,
    few: bool = False,
    refuse: Callable[[Any, ApiError], Any] | None = None,
    check: Callable[[Any, Context], None] | None = None,
) -> Callable[[Handler], Handler]:
    """Registers a handler; `versions` narrows what the message declares (its unstable last version is never served).

    - `on`: which listeners serve it;
    - `forwarded`: the active controller handles it;
    - `portions`: a request with very many items is handled some at a time;
    - `few`: a request with very many elements has no meaning and closes the connection;
    - `refuse`: what the response looks like where the active controller refuses all of the request (`api/refusals.py`);
      `check` refuses it before it is divided into portions.
    """
    low, high = request.versions
    if request.latest_unstable:
        high -= 1
    if versions is not None:
        first, _, last = versions.partition("-")
        low, high = max(low, int(first)), min(high, int(last or first))

    def register(handler: Handler) -> Handler:
        assert request.key not in ENDPOINTS, f"{request.name} has two handlers"
        refusing = None if refuse is None else Refusing(handler, refuse, portions, check)
        if refusing is not None:
            served: Handler = wraps(handler)(partial(refusing.answer))
        else:
            served = handler if portions is None else in_portions(portions, handler)
        ENDPOINTS[request.key] = Served(
            request.key, request.name, low, high, served, request, on, forwarded, few, refusing
        )
        return handler

    return register


def load_handlers() -> None:
    """Imports every module of `server/handlers`, for those who want them all; each registers itself."""
    for key in (*SERVED, *SERVED_TO_CONTROLLERS):
        load_handler(key)


def load_handler(key: int) -> None:
    """Imports the handler of an API that is served, and the coordinators with the first handler that asks them."""
    module = api.module_of(key)
    importlib.import_module(f"ottla.server.handlers.{module}")
    if module.startswith(_COORDINATED):
        importlib.import_module("ottla.server.coordinators.all_coordinators")


def is_unloaded(key: int) -> bool:
    """Whether the API is served, and nobody has asked for it yet."""
    return key not in ENDPOINTS and (key in SERVED or key in SERVED_TO_CONTROLLERS)


class Route:
    """All that is needed to decode one request version, handle it, and encode the answer."""

    __slots__ = (
        "decode",
        "encode",
        "endpoint",
        "flexible_request",
        "forwarded",
        "handler",
        "header_version",
        "version",
    )

    def __init__(self, endpoint: Served, version: int) -> None:
        self.endpoint = endpoint
        self.handler = endpoint.handler
        self.forwarded = endpoint.forwarded
        self.version = version
        self.decode = compile.bounded_decoder(endpoint.request, version)
        self.encode = compile.encoder(api.response_class(endpoint.key), version)
        self.flexible_request = header.request_header_version(endpoint.key, version) >= 2
        self.header_version = header.response_header_version(endpoint.key, version)

    def reply(self, response: Response, correlation_id: int) -> list[Any]:
        """The frame of a response, as byte strings with file slices between them."""
        return framed(response, self.encode, self.header_version, correlation_id)

    def decode_in_steps(self, frame: memoryview, position: int) -> Generator[None, None, Request]:
        """The request of a frame for which `decode` raised Crowded."""
        if self.endpoint.few:
            raise WireError(f"{self.endpoint.name} never has more than {ELEMENTS_AT_ONCE_MAX} elements")
        request, _ = yield from compile.step_decoder(self.endpoint.request, self.version)(frame, position)
        return request

    def reply_in_steps(self, response: Response, correlation_id: int) -> Generator[None, None, list[Any]]:
        """`reply` for a large one."""
        encode = compile.step_encoder(api.response_class(self.endpoint.key), self.version)
        return framed_in_steps(response, encode, self.header_version, correlation_id)


def route(key: int, version: int) -> Route | None:
    """The route of a (key, version) that is served to clients, or None."""
    found = _routes.get(key << 16 | version)
    if found is None:
        found = _find(key, version, SERVED)
        if found is not None:
            _routes[key << 16 | version] = found
    return found


def controller_route(key: int, version: int) -> Route | None:
    """The route of a (key, version) that is served on the controllers' own listeners, or None."""
    found = _controller_routes.get(key << 16 | version)
    if found is None:
        found = _find(key, version, SERVED_TO_CONTROLLERS)
        if found is not None:
            _controller_routes[key << 16 | version] = found
    return found


def _find(key: int, version: int, served: Mapping[int, tuple[int, int]]) -> Route | None:
    low, high = served.get(key, _NOT_SERVED)
    if not low <= version <= high:
        return None
    if key not in ENDPOINTS:
        load_handler(key)
    return Route(ENDPOINTS[key], version)


def unserved(key: int, version: int, served: Callable[[int, int], Route | None]) -> tuple[Route, ApiVersionsResponse]:
    """KIP-511: an ApiVersions we do not know is answered in version 0, with the versions we do know of it."""
    if key != ApiVersionsRequest.key:
        raise Disconnect(f"API key {key} version {version} is not served")
    route = served(key, 0)
    assert route is not None, "ApiVersions is always served"
    known = ApiVersionsResponse.ApiVersion(api_key=key, min_version=route.endpoint.low, max_version=route.endpoint.high)
    return route, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
