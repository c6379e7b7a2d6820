"""Dispatch: from (API key, version) to a handler, and from its answer to bytes; the only table of served APIs.

`@handles` is the one registration; `make docs` derives the table `server/api/api_table.py` from it, so that a node can
tell which APIs it serves without importing all handlers: each is imported by the first request of its kind. A `Route`
has everything that one (key, version) needs, made on first use, so that a request costs one dictionary look-up.

Clients and controllers use different listeners, which serve different APIs; some are served by both. Requests that
change the cluster are `forwarded`: a node that is not the active controller forwards them to it (see
`server/api/forwarding.py`), so their handlers only run on the active controller.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Mapping
from functools import partial, wraps
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

from ottla.log.files.disk import FileSlice
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import ELEMENTS_AT_ONCE_MAX
from ottla.records.batch import Buffer
from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.server.api.context import Context
from ottla.server.api.portions import Portions, in_portions
from ottla.server.api.refusals import Handler, Outcome, Refusing
from ottla.server.loop.later import Answer, Disconnect
from ottla.server.quorum.active_controller import Decided
from ottla.wire import api, compile, header
from ottla.wire.compile import WireError
from ottla.wire.frame import framed, framed_in_steps
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse

RequestT = TypeVar("RequestT", bound=Request[Response])
ResponseT = TypeVar("ResponseT", bound=Response)
# A part of an encoded response.
Part: TypeAlias = Buffer | FileSlice
Listeners = Literal["broker", "controller", "both"]

# The folders of the handlers that use coordinators.
_COORDINATED = ("groups.", "txns.", "shares.")


class Served(NamedTuple):
    """One served API and the versions it is served in."""

    key: int
    name: str
    low: int
    high: int
    handler: Handler
    request: type[Request[Response]]
    on: Listeners = "broker"
    forwarded: bool = False
    few: bool = False  # whether a valid request always has few elements
    refusing: Refusing[Any] | None = None  # set if the active controller decides

    def decide(self, request: Request[Response], context: Context) -> Answer[Outcome]:
        """Return the handler's answer for a caller that can ask another node: the response, or `NotController`."""
        return self.handler(request, context) if self.refusing is None else self.refusing.decide(request, context)

    def refused(self, request: Request[Response], context: Context, error: ApiError) -> Answer[Outcome]:
        """Return the response that refuses the whole request with `error`. The quorum's own APIs have no such response:
        they answer with this node's view.
        """
        if self.refusing is None:
            return self.handler(request, context)
        return self.refusing.refused(request, context, error)


ENDPOINTS: dict[int, Served] = {}  # the APIs whose handlers are imported
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
    request: type[Request[Response]],
    versions: str | None = None,
    *,
    on: Listeners = "broker",
    forwarded: bool = False,
    portions: Portions | None = None,
    few: bool = False,
    refuse: Callable[[Any, ApiError], Response] | None = None,
    check: Callable[[Any, Context], None] | None = None,
) -> Callable[[Handler], Handler]:
    """Register a handler; `versions` narrows the versions of the message (an unstable last version is never served).

    - `on`: the kinds of listeners that serve it;
    - `forwarded`: the active controller handles it;
    - `portions`: a request with very many items is handled some at a time;
    - `few`: a request with very many elements has no meaning and closes the connection;
    - `refuse`: builds the response if the active controller refuses the whole request (`api/refusals.py`); `check` may
      refuse it before it is divided into portions.
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
    """Import every module of `server/handlers`; each registers itself."""
    for key in (*SERVED, *SERVED_TO_CONTROLLERS):
        load_handler(key)


def load_handler(key: int) -> None:
    """Import the handler of a served API, and the coordinators with the first handler that uses them."""
    module = api.module_of(key)
    importlib.import_module(f"ottla.server.handlers.{module}")
    if module.startswith(_COORDINATED):
        importlib.import_module("ottla.server.coordinators.all_coordinators")


def is_unloaded(key: int) -> bool:
    """Return whether the API is served and its handler is not imported yet."""
    return key not in ENDPOINTS and (key in SERVED or key in SERVED_TO_CONTROLLERS)


class Route:
    """Everything needed to decode one request version, handle it, and encode the answer."""

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

    def reply(self, response: Response, correlation_id: int) -> list[Part]:
        """Return the frame of a response, as byte strings with file slices between them."""
        return framed(response, self.encode, self.header_version, correlation_id)

    def decode_in_steps(self, frame: memoryview, position: int) -> Generator[None, None, Request[Response]]:
        """Decode the request of a frame for which `decode` raised Crowded."""
        if self.endpoint.few:
            raise WireError(f"{self.endpoint.name} never has more than {ELEMENTS_AT_ONCE_MAX} elements")
        request, _ = yield from compile.step_decoder(self.endpoint.request, self.version)(frame, position)
        return request

    def reply_in_steps(self, response: Response, correlation_id: int) -> Generator[None, None, list[Part]]:
        """Do the same as `reply` in steps, for a large response."""
        encode = compile.step_encoder(api.response_class(self.endpoint.key), self.version)
        return framed_in_steps(response, encode, self.header_version, correlation_id)


def route(key: int, version: int) -> Route | None:
    """Return the route of a (key, version) that is served to clients, or None."""
    found = _routes.get(key << 16 | version)
    if found is None:
        found = _find(key, version, SERVED)
        if found is not None:
            _routes[key << 16 | version] = found
    return found


def controller_route(key: int, version: int) -> Route | None:
    """Return the route of a (key, version) that is served on controller listeners, or None."""
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
    """Answer an unknown version of ApiVersions in version 0, with the versions that are served of it (KIP-511)."""
    if key != ApiVersionsRequest.key:
        raise Disconnect(f"API key {key} version {version} is not served")
    route = served(key, 0)
    assert route is not None, "ApiVersions is always served"
    known = ApiVersionsResponse.ApiVersion(api_key=key, min_version=route.endpoint.low, max_version=route.endpoint.high)
    return route, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
