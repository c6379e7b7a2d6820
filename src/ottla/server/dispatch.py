"""From (API key, version) to a handler, and from what it returns to bytes: the only table of served APIs.

`@handles` is the one registration: ApiVersions, the docs table and the tidy tests read `ENDPOINTS`. A `Route` binds
everything one (key, version) needs, made on first use, so that a request costs one dictionary look-up.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, TypeVar

from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.wire import api, compile, header
from ottla.wire.message import Request, Response

RequestT = TypeVar("RequestT", bound=Request)
ResponseT = TypeVar("ResponseT", bound=Response)
Handler = Callable[[Any, Context], Answer[Any]]

_SHORT_HEAD = Struct(">ii")  # length, correlation id
_FLEX_HEAD = Struct(">iiB")  # length, correlation id, no tagged fields


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One served API and the versions it is served in."""

    key: int
    name: str
    low: int
    high: int
    handler: Handler
    request: type[Request]


ENDPOINTS: dict[int, Endpoint] = {}
_routes: dict[int, Route] = {}


def handles(
    request: type[RequestT], versions: str | None = None
) -> Callable[[Callable[[RequestT, Context], Answer[ResponseT]]], Callable[[RequestT, Context], Answer[ResponseT]]]:
    """Registers a handler; `versions` narrows what the message declares (its unstable last version is never served)."""
    low, high = request.versions
    if request.latest_unstable:
        high -= 1
    if versions is not None:
        first, _, last = versions.partition("-")
        low, high = max(low, int(first)), min(high, int(last or first))

    def register(
        handler: Callable[[RequestT, Context], Answer[ResponseT]],
    ) -> Callable[[RequestT, Context], Answer[ResponseT]]:
        assert request.key not in ENDPOINTS, f"{request.name} has two handlers"
        ENDPOINTS[request.key] = Endpoint(request.key, request.name, low, high, handler, request)
        return handler

    return register


def load_handlers() -> None:
    """Imports every module of `server/handlers`; each registers itself."""
    package = importlib.import_module("ottla.server.handlers")
    for module in sorted(found.name for found in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{module}")


class Route:
    """All that is needed to decode one request version, handle it, and encode the answer."""

    __slots__ = ("decode", "encode", "endpoint", "flexible_request", "flexible_response", "handler", "version")

    def __init__(self, endpoint: Endpoint, version: int) -> None:
        self.endpoint = endpoint
        self.version = version
        self.handler = endpoint.handler
        self.decode = compile.decoder(endpoint.request, version)
        self.encode = compile.encoder(api.response_class(endpoint.key), version)
        self.flexible_request = header.request_header_version(endpoint.key, version) >= 2
        self.flexible_response = header.response_header_version(endpoint.key, version) >= 1

    def reply(self, response: Any, correlation_id: int) -> list[Any]:
        """The frame of a response, as byte strings with file slices between them."""
        out = bytearray(9 if self.flexible_response else 8)
        splices: list[tuple[int, Any]] = []
        self.encode(response, out, splices)
        size = len(out) - 4
        if splices:
            size += sum(len(spliced) for _, spliced in splices)
        if self.flexible_response:
            _FLEX_HEAD.pack_into(out, 0, size, correlation_id, 0)
        else:
            _SHORT_HEAD.pack_into(out, 0, size, correlation_id)
        return weave(out, splices) if splices else [out]


def weave(out: bytearray, splices: list[tuple[int, Any]]) -> list[Any]:
    """Cuts `out` where a file slice belongs and puts it there."""
    parts: list[Any] = []
    start = 0
    view = memoryview(out)
    for position, spliced in splices:
        if position > start:
            parts.append(view[start:position])
            start = position
        if isinstance(spliced, list):
            parts.extend(spliced)
        else:
            parts.append(spliced)
    if start < len(out):
        parts.append(view[start:])
    return parts


def route(key: int, version: int) -> Route | None:
    """The route of a served (key, version), or None."""
    found = _routes.get(key << 16 | version)
    if found is None:
        endpoint = ENDPOINTS.get(key)
        if endpoint is None or not endpoint.low <= version <= endpoint.high:
            return None
        found = _routes[key << 16 | version] = Route(endpoint, version)
    return found
