"""What changed, for the audit log: the API of a request that passed the guard, and what the request names.

A decision says only which right was used, such as CREATE on the cluster, and a connection remembers it. So each request
that changes something is noted on its own, without what the guard has taken out of it. On a node without an authorizer,
which has no guard and decides nothing, these are the only notes of changes.
"""

from __future__ import annotations

from functools import wraps

from ottla.model.errors import ApiError
from ottla.server.api.changes.names import shown
from ottla.server.api.context import Context
from ottla.server.api.needs import Needs
from ottla.server.api.refusals import Handler, Outcome, mapped
from ottla.server.loop.later import Answer
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response


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

        def note(outcome: Outcome) -> Outcome:
            if not isinstance(outcome, NotController):
                context.note_change(api, named, is_allowed=_error_code(outcome) not in refuses)
            return outcome

        answer = handler(request, context)
        if refuses:
            return mapped(answer, note)
        if not isinstance(answer, NotController):
            context.note_change(api, named)
        return answer

    return handle


def _error_code(outcome: Response | ApiError) -> int:
    return int(outcome.code if isinstance(outcome, ApiError) else getattr(outcome, "error_code", 0))
