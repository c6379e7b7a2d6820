"""What the guard does with the answer of a handler, whether it is there at once, later, or made in slices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import TypeAlias, TypeVar, cast

from ottla.server.loop.later import Answer, Large, Later, Sliced
from ottla.server.loop.slices import Slices, Tally
from ottla.wire.message import Response

ResponseT = TypeVar("ResponseT", bound=Response)
T = TypeVar("T")
# Work that yields where a slice ends, and its result.
Steps: TypeAlias = Generator[None, None, T]


def merged(answer: Answer[ResponseT], merge: Callable[[ResponseT], ResponseT]) -> Answer[ResponseT]:
    """Return the answer with `merge` applied to its response; errors, and requests without a response, stay as they
    are.
    """

    def apply(outcome: ResponseT | Large[ResponseT]) -> ResponseT | Large[ResponseT]:
        if isinstance(outcome, Large):
            return Large(merge(outcome.response))
        return merge(outcome) if _is_response(outcome) else outcome

    async def awaited(making: Awaitable[ResponseT | Large[ResponseT]]) -> ResponseT | Large[ResponseT]:
        return apply(await making)

    if answer is None:
        return None
    if isinstance(answer, Later):
        # A `Later` is set to a Large response, too, where a request has very many partitions.
        return cast("Later[ResponseT]", answer.map(apply))
    if isinstance(answer, Sliced):
        return Sliced(awaited(answer.making), changes=answer.changes)
    return awaited(answer) if isinstance(answer, Awaitable) else apply(answer)


def reviewed(
    answer: Answer[ResponseT], review: Callable[[ResponseT], Steps[ResponseT]], slices: Slices
) -> Answer[ResponseT]:
    """Return the answer with its response reviewed in slices, because it may have very many elements."""

    async def awaited(making: Awaitable[ResponseT | Large[ResponseT]]) -> ResponseT | Large[ResponseT]:
        outcome = await making
        if isinstance(outcome, Large):
            return Large(await slices.finish(review(outcome.response)))
        return await slices.finish(review(outcome)) if _is_response(outcome) else outcome

    if isinstance(answer, Later):
        answer = answer.soonest()
    if answer is None:
        return None
    if isinstance(answer, Sliced):
        return Sliced(awaited(answer.making), changes=answer.changes)
    if isinstance(answer, Awaitable):
        return awaited(answer)
    if isinstance(answer, Large):
        return slices.answer(review(answer.response))
    return slices.answer(review(answer)) if _is_response(answer) else answer


def kept(items: Iterable[T], is_kept: Callable[[T], bool], tally: Tally, work: int = 1) -> Steps[list[T]]:
    """Return the items that stay; `work` is the number of decisions that one takes."""
    stay = []
    for each in items:
        if is_kept(each):
            stay.append(each)
        if tally.is_full(work):
            yield
    return stay


def _is_response(outcome: object) -> bool:
    """Return whether an outcome is a response: a handler that asks the active controller may also give an ApiError,
    which the declared types of handlers behind the guard leave out.
    """
    return isinstance(outcome, Response)
