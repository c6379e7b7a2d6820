"""Routes: each page and action is declared beside its handler, with `@page` and `@action`.

Rules:
- `@page` only shows. `@action` changes something: it is a POST, passes the gate's checks (the form's token, read-only
  mode), and is noted in the console's log.
- A pattern has names in braces for segments of the path: `/topics/{topic}`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

if TYPE_CHECKING:
    from ottla.console.answers import Answer
    from ottla.console.call import PageCall

Handler: TypeAlias = "Callable[[PageCall], Awaitable[Answer]]"


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One declared route. `is_open`: also for visitors who have not signed in. `in_read_only`: also in read-only mode,
    because it changes nothing of the cluster.
    """

    method: str
    pattern: str
    handler: Handler
    is_open: bool = False
    in_read_only: bool = True

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.pattern.strip("/").split("/"))


class RouteTable:
    """The routes by method and path."""

    def __init__(self) -> None:
        self._routes: dict[tuple[str, int], list[PageRoute]] = {}

    def __iter__(self) -> Iterator[PageRoute]:
        for routes in self._routes.values():
            yield from routes

    def add(self, route: PageRoute) -> None:
        routes = self._routes.setdefault((route.method, len(route.segments)), [])
        assert route.pattern not in {each.pattern for each in routes}, f"{route.pattern} is declared twice"
        routes.append(route)
        # A literal segment counts before a named one: /topics/new before /topics/{topic}.
        routes.sort(key=lambda each: [segment.startswith("{") for segment in each.segments])

    def find(self, method: str, raw_path: str) -> tuple[PageRoute, dict[str, str]] | None:
        """Return the route of a path that is still percent-encoded, and its named segments."""
        given = raw_path.strip("/").split("/")
        for route in self._routes.get((method, len(given)), ()):
            named = _match(route.segments, given)
            if named is not None:
                return route, named
        return None


ROUTES = RouteTable()


def page(pattern: str, *, is_open: bool = False) -> Callable[[Handler], Handler]:
    """Declare what is shown at a path."""

    def declare(handler: Handler) -> Handler:
        ROUTES.add(PageRoute("GET", pattern, handler, is_open))
        return handler

    return declare


def action(pattern: str, *, is_open: bool = False, in_read_only: bool = False) -> Callable[[Handler], Handler]:
    """Declare what a form sent to a path does."""

    def declare(handler: Handler) -> Handler:
        ROUTES.add(PageRoute("POST", pattern, handler, is_open, in_read_only))
        return handler

    return declare


def _match(pattern: Sequence[str], given: Sequence[str]) -> dict[str, str] | None:
    named: dict[str, str] = {}
    for wanted, segment in zip(pattern, given, strict=True):
        text = unquote(segment)
        if wanted.startswith("{"):
            named[wanted[1:-1]] = text
        elif wanted != text:
            return None
    return named
