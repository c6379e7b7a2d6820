"""Decisions about many names of one request: in slices if there are so many that they would hold up the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar, cast

from ottla.model import limits
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of
from ottla.server.loop.later import NO_ANSWER, Answer, Large, Sliced
from ottla.wire.message import Response

ResponseT = TypeVar("ResponseT", bound=Response)
Names = Collection[str]


def with_allowed(
    names: Names,
    decide: Callable[[Decisions, str], bool],
    go_on: Callable[[set[str]], Answer[ResponseT]],
    context: Context,
) -> Answer[ResponseT]:
    """Return the answer that `go_on` makes of the names that are allowed."""
    decisions = decisions_of(context)
    if len(names) <= limits.DECISIONS_PER_SLICE:
        return go_on({name for name in names if decide(decisions, name)})
    return Sliced(_in_slices(names, decide, go_on, context, context.request_version), changes=True)


async def _in_slices(
    names: Names,
    decide: Callable[[Decisions, str], bool],
    go_on: Callable[[set[str]], Answer[ResponseT]],
    context: Context,
    version: int,
) -> ResponseT | Large[ResponseT]:
    slices, decisions = context.runtime.slices, decisions_of(context)
    every = list(names)
    allowed: set[str] = set()
    for first in range(0, len(every), limits.DECISIONS_PER_SLICE):
        await slices.turn()
        allowed.update(name for name in every[first : first + limits.DECISIONS_PER_SLICE] if decide(decisions, name))
    context.request_version = version
    answer = go_on(allowed)
    outcome = await answer if isinstance(answer, Awaitable) else answer
    return cast("ResponseT | Large[ResponseT]", NO_ANSWER if outcome is None else outcome)  # Produce with acks=0
