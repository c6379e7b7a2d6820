"""The span of the request that the present code works for, on a node that traces; on others there never is one.

It is kept in a context variable: tasks, and callbacks of the event loop, inherit it from the code that began them.
What outlives a request may inherit it by chance, so a span that has ended counts as none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from typing import Protocol, TypeVar

from ottla.server.loop.later import Later

T = TypeVar("T")
Attribute = str | bool | int | float


class OpenSpan(Protocol):
    """A piece of work that is under way."""

    @property
    def is_open(self) -> bool: ...

    @property
    def trace_parent(self) -> bytes:
        """What another node needs to begin a child of this span."""

    def child(self, name: str, *, asks: bool = False) -> OpenSpan:
        """Begin a child; `asks`: it waits for another node."""

    def note(self, name: str, value: Attribute) -> None: ...

    def end(self, error: str = "") -> None:
        """End it, with the name of an error if there was one. Further calls have no effect."""


_current: ContextVar[OpenSpan | None] = ContextVar("span", default=None)


def current_span() -> OpenSpan | None:
    span = _current.get()
    return span if span is not None and span.is_open else None


def work_for(span: OpenSpan | None) -> None:
    """What this code does and begins from now on is for this span."""
    _current.set(span)


class WorkingFor:
    """`with WorkingFor(span)`: what is done and begun inside is for this span."""

    __slots__ = ("_before", "_span")

    def __init__(self, span: OpenSpan | None) -> None:
        self._span = span
        self._before: Token[OpenSpan | None] | None = None

    def __enter__(self) -> None:
        self._before = _current.set(self._span)

    def __exit__(self, *_: object) -> None:
        assert self._before is not None, "it was entered"
        _current.reset(self._before)


def waiting(later: Later[T], span: OpenSpan, name: str) -> Later[T]:
    """Return the same answer; a child of the span tells how long it took."""
    child = span.child(name)
    return later.map(partial(_ended, child.end))


def _ended(end: Callable[[], None], value: T) -> T:
    end()
    return value
