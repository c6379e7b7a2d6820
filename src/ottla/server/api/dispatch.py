"""Dispatch: from (API key, version) to a handler, and from its answer to bytes; the only table of served APIs.

`@handles` is the one registration; `make docs` derives the table `server/api/api_table.py` from it, so that a node can
tell which APIs it serves without importing all handlers: each is imported by the first request of its kind. A `Route`
has everything that one (key, version) needs, made on first use, so that a request costs one dictionary look-up.

Clients and controllers use different listeners, which serve different APIs; some are served by both. Requests that
change the cluster are `forwarded`: a node that is not the active controller forwards them to it (see
`server/api/forwarding/forwarding.py`), so their handlers only run on the active controller.

Each API declares the rights that it needs (`server/api/needs.py`). A node with an authorizer uses guarded routes, whose
handlers are behind the guard (`server/api/guard/guarded.py`); on other nodes nothing is checked and nothing is loaded.
With an audit log and no authorizer, changes are noted all the same (`server/api/changes/notes.py`).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Generator, Mapping
from functools import partial, wraps
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

from ottla.log.files.disk import FileSlice
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import ELEMENTS_AT_ONCE_MAX
from ottla.records.batch import Buffer
from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.server.api.context import Context
from ottla.server.api.needs import NOTHING, Needs
from ottla.server.api.portions import Portions, in_portions
from ottla.server.api.refusals import Handler, Outcome, Refusing
from ottla.server.api.request_counts import RequestCounts, RouteCounts
from ottla.server.loop.later import Answer, Disconnect
from ottla.server.quorum.active_controller import Decided
from ottla.server.security.authorization import Authorization
from ottla.wire import api, compile, header
from ottla.wire.compile import WireError
from ottla.wire.frame import framed, framed_in_steps
from ottla.wire.message import Request, Response, fields
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.varint import skip_tags

RequestT = TypeVar("RequestT", bound=Request[Response])
ResponseT = TypeVar("ResponseT", bound=Response)
# A part of an encoded response.
Part: TypeAlias = Buffer | FileSlice
Decode: TypeAlias = Callable[[memoryview, int], tuple[Request[Response], int]]
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
    needs: Needs = NOTHING
    in_envelopes: bool = False  # whether a broker may send it, or the rest of it, for a client
    guarded: Callable[[], Served] | None = None  # builds the same with its handler behind the guard
    noted: Callable[[], Served] | None = None  # builds the same with notes of changes, and without a guard

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


@overload
def handles(
    request: type[RequestT],
    versions: str | None = None,
    *,
    needs: Needs,
    on: Listeners = "broker",
    forwarded: bool = False,
    forwarded_in_part: bool = False,
    portions: Portions | None = None,
    few: bool = False,
) -> Callable[[Callable[[RequestT, Context], Answer[ResponseT]]], Callable[[RequestT, Context], Answer[ResponseT]]]: ...


@overload
def handles(
    request: type[RequestT],
    versions: str | None = None,
    *,
    needs: Needs,
    on: Listeners = "broker",
    forwarded: bool = False,
    forwarded_in_part: bool = False,
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
    needs: Needs,
    on: Listeners = "broker",
    forwarded: bool = False,
    forwarded_in_part: bool = False,
    portions: Portions | None = None,
    few: bool = False,
    refuse: Callable[[Any, ApiError], Response] | None = None,
    check: Callable[[Any, Context], None] | None = None,
) -> Callable[[Handler], Handler]:
    """Register a handler; `versions` narrows the versions of the message (an unstable last version is never served).

    - `needs`: the rights that a client needs for it;
    - `on`: the kinds of listeners that serve it;
    - `forwarded`: the active controller handles it;
    - `forwarded_in_part`: the handler decides a part of it, and has the active controller handle the rest;
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

    def serve(handler: Handler) -> Served:
        refusing = None if refuse is None else Refusing(handler, refuse, portions, check)
        if refusing is not None:
            served: Handler = wraps(handler)(partial(refusing.answer))
        else:
            served = handler if portions is None else in_portions(portions, handler)
        sealed = forwarded or forwarded_in_part
        return Served(
            request.key, request.name, low, high, served, request, on, forwarded, few, refusing, needs, sealed
        )

    def register(handler: Handler) -> Handler:
        assert request.key not in ENDPOINTS, f"{request.name} has two handlers"

        def behind_guard() -> Served:
            from ottla.server.api.guard.guarded import guarded  # only here: many nodes have no authorizer

            return serve(guarded(handler, request, needs, refuse))

        def with_notes() -> Served:
            from ottla.server.api.changes.notes import noted  # a node without an audit log never needs it

            return serve(noted(handler, request.name, needs))

        ENDPOINTS[request.key] = serve(handler)._replace(guarded=behind_guard, noted=with_notes)
        return handler

    return register


def load_handlers() -> None:
    """Import every module of `server/handlers`, also those that are not in the table yet; each registers itself."""
    handlers = importlib.import_module("ottla.server.handlers")
    for module in pkgutil.walk_packages(handlers.__path__, f"{handlers.__name__}."):
        importlib.import_module(module.name)


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
    """Everything needed to decode one request version, handle it, and encode the answer.

    `decode` takes a frame and where its client id ends; it returns the request and where that ends, and raises Crowded
    if the request has very many elements.
    """

    __slots__ = (
        "_body_at",
        "counts",
        "decode",
        "encode",
        "endpoint",
        "forwarded",
        "handler",
        "header_version",
        "is_flexible",
        "throttle_at",
        "version",
    )

    def __init__(self, endpoint: Served, version: int, counts: RouteCounts | None = None) -> None:
        """`counts` counts its requests, on a node with metrics."""
        self.endpoint = endpoint
        self.counts = counts
        self.handler = endpoint.handler
        self.forwarded = endpoint.forwarded
        self.version = version
        decode = compile.bounded_decoder(endpoint.request, version)
        self.is_flexible = header.request_header_version(endpoint.key, version) >= 2
        self.decode = _past_tags(decode) if self.is_flexible else decode
        self._body_at = _after_tags if self.is_flexible else _at_once
        response = api.response_class(endpoint.key)
        self.encode = compile.encoder(response, version)
        self.header_version = header.response_header_version(endpoint.key, version)
        first = next((field.name for field in fields(response) if version in field.versions), None)
        # the position of the throttle time in an encoded response, if it comes first
        self.throttle_at = 4 + self.header_version if first == "throttle_time_ms" else None

    def reply(self, response: Response, correlation_id: int) -> list[Part]:
        """Return the frame of a response, as byte strings with file slices between them."""
        return framed(response, self.encode, self.header_version, correlation_id)

    def decode_in_steps(self, frame: memoryview, head_end: int) -> Generator[None, None, Request[Response]]:
        """Decode the request of a frame for which `decode` raised Crowded."""
        if self.endpoint.few:
            raise WireError(f"{self.endpoint.name} never has more than {ELEMENTS_AT_ONCE_MAX} elements")
        decode = compile.step_decoder(self.endpoint.request, self.version)
        request, _ = yield from decode(frame, self._body_at(frame, head_end))
        return request

    def reply_in_steps(self, response: Response, correlation_id: int) -> Generator[None, None, list[Part]]:
        """Do the same as `reply` in steps, for a large response."""
        encode = compile.step_encoder(api.response_class(self.endpoint.key), self.version)
        return framed_in_steps(response, encode, self.header_version, correlation_id)


def _past_tags(decode: Decode) -> Decode:
    """Return a decoder that skips the tagged fields of a flexible header first; there hardly ever are any."""

    def decode_past(frame: memoryview, head_end: int) -> tuple[Request[Response], int]:
        return decode(frame, _after_tags(frame, head_end) if frame[head_end] else head_end + 1)

    return decode_past


def _after_tags(frame: memoryview, head_end: int) -> int:
    return skip_tags(frame, head_end + 1, frame[head_end])


def _at_once(_: memoryview, head_end: int) -> int:
    """Return where the body begins behind a header that is not flexible."""
    return head_end


class Routes:
    """The routes of the APIs that one kind of listener serves, each made on first use.

    `made` has them by `API key << 16 | version`, so that a connection finds the route of a request without a call.
    """

    def __init__(
        self,
        served: Mapping[int, tuple[int, int]],
        around: Callable[[Served], Served] = lambda endpoint: endpoint,
        counts: RequestCounts | None = None,
    ) -> None:
        """`around` returns an API as this kind of listener serves it; `counts` counts requests by these routes."""
        self.made: dict[int, Route] = {}
        self._served = served
        self._around = around
        self._counts = counts

    def counted(self, counts: RequestCounts) -> Routes:
        """Return routes of the same APIs for one node, whose requests are counted."""
        return Routes(self._served, self._around, counts)

    def serves(self, key: int) -> bool:
        """Return whether the API is served in some version."""
        return key in self._served

    def find(self, key: int, version: int) -> Route | None:
        """Return the route of a (key, version), or None if it is not served."""
        found = self.made.get(key << 16 | version)
        if found is not None:
            return found
        low, high = self._served.get(key, _NOT_SERVED)
        if not low <= version <= high:
            return None
        if key not in ENDPOINTS:
            load_handler(key)
        endpoint = ENDPOINTS[key]
        counts = None if self._counts is None else self._counts.of(endpoint.name, version, api.response_class(key))
        made = self.made[key << 16 | version] = Route(self._around(endpoint), version, counts)
        return made


def _guarded(endpoint: Served) -> Served:
    assert endpoint.guarded is not None, "every registered API can be guarded"
    return endpoint.guarded()


def _noted(endpoint: Served) -> Served:
    assert endpoint.noted is not None, "every registered API can be noted"
    return endpoint.noted()


ROUTES = Routes(SERVED)
CONTROLLER_ROUTES = Routes(SERVED_TO_CONTROLLERS)
GUARDED_ROUTES = Routes(SERVED, _guarded)
_GUARDED_CONTROLLER_ROUTES = Routes(SERVED_TO_CONTROLLERS, _guarded)
_NOTED_ROUTES = Routes(SERVED, _noted)
_NOTED_CONTROLLER_ROUTES = Routes(SERVED_TO_CONTROLLERS, _noted)


def routes_of(authorization: Authorization, *, controller: bool = False, counts: RequestCounts | None = None) -> Routes:
    """Return the routes of a node's listeners; `controller`: of those for controllers. `counts` counts requests."""
    routes = _routes_of(authorization, controller=controller)
    return routes if counts is None else routes.counted(counts)


def _routes_of(authorization: Authorization, *, controller: bool) -> Routes:
    if authorization.authorizer is not None:
        return _GUARDED_CONTROLLER_ROUTES if controller else GUARDED_ROUTES
    if authorization.audit is not None:
        return _NOTED_CONTROLLER_ROUTES if controller else _NOTED_ROUTES
    return CONTROLLER_ROUTES if controller else ROUTES


def unserved(key: int, version: int, routes: Routes) -> tuple[Route, ApiVersionsResponse]:
    """Answer an unknown version of ApiVersions in version 0, with the versions that are served of it (KIP-511)."""
    if key != ApiVersionsRequest.key:
        raise Disconnect(f"API key {key} version {version} is not served")
    route = routes.find(key, 0)
    assert route is not None, "ApiVersions is always served"
    known = ApiVersionsResponse.ApiVersion(api_key=key, min_version=route.endpoint.low, max_version=route.endpoint.high)
    return route, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[known])
