"""Refusals: errors of the active controller for a whole request, converted to a response of the request's own kind.

A handler that asks the active controller returns its response, or the ApiError that refused the request. `@handles(…,
refuse=…)` declares how to build a response from that error. There are two methods for callers:

- `decide` is for callers that can ask another node: `NotController` is returned as it is, so that the request can be
  sent to the current controller. Every other error is converted to a response.
- `answer` is for a client that asked this node as a controller: NOT_CONTROLLER is converted to a response, too.

A request with very many items is refused in portions, as it would have been handled. A node that forwards it divides it
before (`decide_each`), so that what a controller has decided is kept if another one takes over in the middle.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeAlias, TypeVar

from ottla.model.errors import ApiError
from ottla.server.api.context import Context
from ottla.server.api.portions import Portions, dividing, in_portions
from ottla.server.loop.later import Answer, Large, Later, Sliced
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response

RequestT = TypeVar("RequestT", bound=Request[Response])
# Takes a request of one kind and returns its response.
Handler: TypeAlias = Callable[[Any, Context], Answer[Any]]
# The outcome of a request that asks the active controller.
Outcome: TypeAlias = Response | NotController


class Refusing(Generic[RequestT]):
    """A handler that asks the active controller. `check` looks at a whole request before it is divided into portions
    and raises the ApiError that refuses it.
    """

    def __init__(
        self,
        handler: Handler,
        refuse: Callable[[RequestT, ApiError], Response],
        portions: Portions | None,
        check: Callable[[RequestT, Context], None] | None,
    ) -> None:
        self._handler = handler
        self._refuse = refuse
        self._portions = portions
        self._check = check
        self._divided = self._handle if portions is None else in_portions(portions, self._handle)
        self._paths_in = None if portions is None else dividing(portions)

    def divides(self, request: RequestT) -> bool:
        """Return whether the request has so many items that it is divided into portions."""
        return self._paths_in is not None and self._paths_in(request) is not None

    def decide(self, request: RequestT, context: Context) -> Answer[Outcome]:
        """Return the response, or `NotController`."""
        refused = self._refused_by_check(request, context)
        return self._divided(request, context) if refused is None else refused

    def decide_each(
        self, request: RequestT, context: Context, decide: Callable[[RequestT, Context], Answer[Outcome]]
    ) -> Answer[Outcome]:
        """Return the response to a request that is divided, with `decide` called for each portion."""
        assert self._portions is not None, "it is divided"
        refused = self._refused_by_check(request, context)
        return in_portions(self._portions, decide)(request, context) if refused is None else refused

    def _refused_by_check(self, request: RequestT, context: Context) -> Answer[Outcome]:
        """Return the response to a request that is refused before it is divided, else None."""
        if self._check is not None:
            try:
                self._check(request, context)
            except ApiError as error:
                return self.refused(request, context, error)
        return None

    def answer(self, request: RequestT, context: Context) -> Answer[Outcome]:
        """Return the response."""
        decided = self.decide(request, context)
        if isinstance(decided, NotController):
            return self.refused(request, context, decided)
        if isinstance(decided, Sliced):
            return Sliced(self._answer_later(decided.making, request, context), changes=decided.changes)
        return mapped(decided, lambda outcome: self._refused_by_role(request, outcome))

    def refused(self, request: RequestT, context: Context, error: ApiError) -> Answer[Outcome]:
        """Return the response that refuses the whole request."""

        def refuse(some: RequestT, _: Context) -> Response:
            return self._refuse(some, error)

        return (
            refuse(request, context)
            if self._portions is None
            else in_portions(self._portions, refuse)(request, context)
        )

    def _handle(self, request: RequestT, context: Context) -> Answer[Outcome]:
        return mapped(self._handler(request, context), lambda outcome: self._refused_by_rule(request, outcome))

    async def _answer_later(
        self, making: Awaitable[Outcome | Large[Outcome]], request: RequestT, context: Context
    ) -> Outcome | Large[Outcome]:
        outcome = await making
        if not isinstance(outcome, NotController):
            return outcome
        refused = self.refused(request, context, outcome)
        assert refused is not None, "every request that asks the controller is answered"
        return await refused if isinstance(refused, Awaitable) else refused

    def _refused_by_role(self, request: RequestT, outcome: Outcome) -> Outcome:
        return self._refuse(request, outcome) if isinstance(outcome, NotController) else outcome

    def _refused_by_rule(self, request: RequestT, outcome: Response | ApiError) -> Outcome:
        if isinstance(outcome, ApiError) and not isinstance(outcome, NotController):
            return self._refuse(request, outcome)
        return outcome


def mapped(answer: Answer[Any], convert: Callable[[Any], Outcome]) -> Answer[Outcome]:
    """Return an answer with `convert` applied to its outcome, now or when that is known."""
    if answer is None or isinstance(answer, Response | Large):
        return answer
    if isinstance(answer, Later):
        return answer.map(convert)
    if isinstance(answer, Sliced):
        return Sliced(_converted(answer.making, convert), changes=answer.changes)
    if isinstance(answer, Awaitable):
        return _converted(answer, convert)
    return convert(answer)


async def _converted(answer: Awaitable[Any], convert: Callable[[Any], Outcome]) -> Outcome | Large[Outcome]:
    outcome = await answer
    return outcome if isinstance(outcome, Large) else convert(outcome)
