"""What changed, for the audit log: the API of a request that passed the guard, and what the request names.

A decision says only which right was used, such as CREATE on the cluster, and a connection remembers it. So each request
that changes something is noted on its own, without what the guard has taken out of it. On a node without an authorizer,
which has no guard and decides nothing, these are the only notes of changes.

A request is noted when its outcome is known: if this node turns out not to be the active controller, the request is
forwarded, and the other node notes it. If nobody waits for the outcome any more, the request is noted all the same,
because it may have changed something.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import wraps
from typing import TypeVar

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.changes.names import shown
from ottla.server.api.context import Context
from ottla.server.api.needs import Needs
from ottla.server.api.refusals import Handler, Outcome
from ottla.server.loop.later import Answer, Large, Later, Sliced
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response

T = TypeVar("T")


def noted(handler: Handler, api: str, needs: Needs) -> Handler:
    """Return the handler of an API with notes of its requests; the handler itself if the API changes nothing."""
    names, refuses = needs.changes, needs.refuses
    if names is None:
        return handler

    @wraps(handler)
    def handle(request: Request[Response], context: Context) -> Answer[Outcome]:
        if not context.is_audited or getattr(request, "validate_only", False):
            return handler(request, context)
        named = shown(names(request))  # now, because the outcome of the request may be known much later
        return _Note(context, api, named, refuses).of(handler(request, context))

    return handle


class _Note:
    """The note of one request, which is made once at most."""

    def __init__(self, context: Context, api: str, named: str, refuses: tuple[ErrorCode, ...]) -> None:
        self._context: Context | None = context
        self._api = api
        self._named = named
        self._refuses = refuses

    def of(self, answer: Answer[Outcome]) -> Answer[Outcome]:
        """Return the answer, with the note made when it is known."""
        if isinstance(answer, Later):
            return self._later(answer)
        if isinstance(answer, Sliced):
            return Sliced(self._awaited(answer.making), changes=answer.changes)
        if isinstance(answer, asyncio.Future):  # it goes on if it is cancelled before it is awaited
            answer.add_done_callback(self._done)
            return answer
        if isinstance(answer, Awaitable):
            return self._awaited(answer)
        self._known(answer)
        return answer

    def _later(self, answer: Later[Outcome]) -> Later[Outcome]:
        made: Later[Outcome] = Later()

        def fail() -> None:
            self._unknown()
            made.fail()

        def abandon() -> None:
            self._unknown()
            answer.abandon()

        made.on_abandon = abandon
        answer.then(lambda outcome: made.set(self._known(outcome)), fail)
        return made

    async def _awaited(self, answer: Awaitable[Outcome | Large[Outcome]]) -> Outcome | Large[Outcome]:
        try:
            return self._known(await answer)
        except BaseException:  # cancelled, too
            self._unknown()
            raise

    def _done(self, task: asyncio.Future[Outcome | Large[Outcome]]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._unknown()
        else:
            self._known(task.result())

    def _known(self, outcome: T) -> T:
        if not isinstance(outcome, NotController):
            self._make(is_allowed=_error_code(outcome) not in self._refuses)
        return outcome

    def _unknown(self) -> None:
        self._make(is_allowed=True)

    def _make(self, *, is_allowed: bool) -> None:
        context, self._context = self._context, None
        if context is not None:
            context.note_change(self._api, self._named, is_allowed=is_allowed)


def _error_code(outcome: object) -> int:
    return int(outcome.code if isinstance(outcome, ApiError) else getattr(outcome, "error_code", 0))
