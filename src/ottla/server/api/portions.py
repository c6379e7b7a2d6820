"""Portions: a request with very many items is handled as several smaller requests, one after the other.

Most APIs treat each of their items (topics, partitions, groups, resources) alike, and the answer for one does not
depend on the others. A client may name any number of items, but they must not block the loop for long. So such a
request is divided, its portions are handled with other work in between, and their answers are merged again.

No later request of the connection is handled meanwhile, so that requests keep their order (see `Sliced`). A request
that changes something is handled completely even if the client disconnects after the first portion, as Kafka does with
a request that it has read; one that only reads is given up. The one difference: an item that is named twice in a
divided request may be answered twice.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ottla.model.errors import ApiError
from ottla.server.api.context import Context
from ottla.server.loop.later import Answer, Large, Sliced
from ottla.wire.message import Request, Response, Struct, fields

RequestT = TypeVar("RequestT", bound=Request[Response])
OutcomeT = TypeVar("OutcomeT", bound=Response | ApiError)
StructT = TypeVar("StructT", bound=Struct)
ItemT = TypeVar("ItemT")
# The steps to the items in the request, and to their answers in the response.
Paths: TypeAlias = tuple[list[str], list[str]]


def _one(_: object) -> int:
    return 1


class Portions(NamedTuple):
    """The paths of the independent items in the request, and of their answers: "topics", or, for items within items,
    "topics.partitions". If versions differ, several paths are given and the first one with items is used.
    """

    of: str | tuple[str, ...]
    into: str | tuple[str, ...]
    items: int  # the total weight of the items in one portion
    weigh: Callable[[Any], int] = _one  # takes an item of the request
    changes: bool = True  # False: the request only reads


def in_portions(
    portions: Portions, handler: Callable[[RequestT, Context], Answer[OutcomeT]]
) -> Callable[[RequestT, Context], Answer[OutcomeT]]:
    """Wrap a handler so that it can handle requests of any size."""
    paths_in = dividing(portions)

    @wraps(handler)
    def handle(request: RequestT, context: Context) -> Answer[OutcomeT]:
        paths = paths_in(request)
        if paths is None:
            return handler(request, context)
        making = _handle_all(portions, *paths, handler, request, context, context.request_version)
        return Sliced(making, changes=portions.changes)

    return handle


def dividing(portions: Portions) -> Callable[[Request[Response]], Paths | None]:
    """Return a function that finds the paths along which a request is divided; it returns None for a request that is
    handled at once.
    """
    of = portions.of if isinstance(portions.of, tuple) else (portions.of,)
    into = portions.into if isinstance(portions.into, tuple) else (portions.into,)
    paths = [(asked.split("."), told.split(".")) for asked, told in zip(of, into, strict=True)]

    def find(request: Request[Response]) -> Paths | None:
        for asked, told in paths:
            found = getattr(request, asked[0])
            if found:
                return (asked, told) if weight(found, asked[1:], portions) > portions.items else None
        return None

    return find


def weight(found: Sequence[object], path: list[str], portions: Portions) -> int:
    if path:
        return sum(1 + weight(getattr(each, path[0]) or (), path[1:], portions) for each in found)
    return len(found) if portions.weigh is _one else sum(map(portions.weigh, found))


async def _handle_all(
    portions: Portions,
    asked: list[str],
    told: list[str],
    handler: Callable[[RequestT, Context], Answer[OutcomeT]],
    request: RequestT,
    context: Context,
    version: int,
) -> OutcomeT | Large[OutcomeT]:
    slices = context.runtime.slices
    whole: OutcomeT | None = None
    for some, _ in divided(getattr(request, asked[0]), asked[1:], portions):
        if whole is not None:
            await slices.turn()
        context.request_version = version
        answer = handler(_with(request, asked[0], some), context)
        if isinstance(answer, Awaitable):
            answer = await answer
        if isinstance(answer, Large):
            answer = answer.response
        assert answer is not None, "a request with many items is answered"
        # an error of the whole request
        if isinstance(answer, ApiError) or getattr(answer, "error_code", False):
            return answer
        if whole is None:
            whole = answer
        else:
            if getattr(answer, "throttle_time_ms", 0):  # a quota was used up by this portion
                setattr(whole, "throttle_time_ms", getattr(answer, "throttle_time_ms"))  # noqa: B009, B010
            put_together(getattr(whole, told[0]), getattr(answer, told[0]), told[1:])
    assert whole is not None, "there are many items"
    return Large(whole)


def divided(found: Sequence[ItemT], path: list[str], portions: Portions) -> Iterator[tuple[list[ItemT], int]]:
    """Yield lists of items that are handled at once, each with its weight."""
    some: list[ItemT] = []
    total = 0
    for each in found:
        for part, more in _parts(each, path, portions):
            if some and total + more > portions.items:
                yield some, total
                some, total = [], 0
            some.append(part)
            total += more
    if some:
        yield some, total


def _parts(each: ItemT, path: list[str], portions: Portions) -> Iterator[tuple[ItemT, int]]:
    """Yield an item, or parts of it if it has too many items of its own."""
    if not path:
        yield each, portions.weigh(each)
        return
    within = getattr(each, path[0]) or []
    own = 1 + weight(within, path[1:], portions)
    if own <= portions.items:
        yield each, own
        return
    for some, part_weight in divided(within, path[1:], portions):
        yield _with(each, path[0], some), 1 + part_weight


def _with(whole: ItemT, name: str, value: list[object]) -> ItemT:
    part = copy.copy(whole)
    setattr(part, name, value)
    return part


def put_together(had: list[StructT], more: list[StructT], path: list[str]) -> None:
    """Append the answers of the next portion to those of the ones before."""
    if path and had and more and _is_same(had[-1], more[0], path[0]):
        put_together(getattr(had[-1], path[0]), getattr(more[0], path[0]), path[1:])
        more = more[1:]
    had.extend(more)


def _is_same(one: Struct, other: Struct, inner: str) -> bool:
    """Return whether both are parts of the same item."""
    names = [field.name for field in fields(type(one)) if field.name != inner]
    return all(getattr(one, name) == getattr(other, name) for name in names)
