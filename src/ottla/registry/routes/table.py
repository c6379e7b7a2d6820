"""The handlers of requests: patterns of path segments, and the methods of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, NamedTuple

from ottla.registry.errors import BadRequest
from ottla.registry.routes.call import Call
from ottla.registry.security.subject_rights import SubjectRight

Handler = Callable[[Call], Awaitable[Any]]


class MatchedRoute(NamedTuple):
    """A handler, the values of the path's named segments, and the pattern of the path."""

    handler: Handler
    params: dict[str, str]
    right: SubjectRight
    pattern: str


_TABLE: dict[tuple[str, ...], dict[str, tuple[Handler, SubjectRight]]] = {}
_RESOURCES = ("subjects", "versions", "schemas", "config", "mode", "compatibility", "contexts", "server")


def route(method: str, pattern: str, right: SubjectRight) -> Callable[[Handler], Handler]:
    """Register a handler, and the right that a client needs; `{name}` in the pattern matches one segment."""

    def registered(handler: Handler) -> Handler:
        methods = _TABLE.setdefault(tuple(part for part in pattern.split("/") if part), {})
        assert method not in methods, f"{method} {pattern} has two handlers"
        methods[method] = handler, right
        return handler

    return registered


def load() -> None:
    """Import the resources, which fills the table."""
    for name in _RESOURCES:
        import_module(f"ottla.registry.routes.{name}")


def find(method: str, segments: list[str]) -> MatchedRoute:
    """Return the handler of a request. Raises BadRequest for an unknown path (404) or method (405)."""
    known = False
    for pattern, methods in _TABLE.items():
        params = _match(pattern, segments)
        if params is None:
            continue
        known = True
        found = methods.get("GET" if method == "HEAD" else method)
        if found is not None:
            return MatchedRoute(found[0], params, found[1], "/" + "/".join(pattern))
    raise BadRequest(405, "HTTP 405 Method Not Allowed") if known else BadRequest(404, "HTTP 404 Not Found")


def _match(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    params = {}
    for part, segment in zip(pattern, segments, strict=True):
        if part.startswith("{"):
            params[part[1:-1]] = segment
        elif part != segment:
            return None
    return params
