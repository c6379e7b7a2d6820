"""Failures: an error of the cluster, or of what a user gave, as a page with one sentence and a hint."""

from __future__ import annotations

import logging

from ottla.client.errors import AuthenticationError, ClientError
from ottla.client.registry import RegistryError, RegistryUnreachable
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.hints import console_hint
from ottla.console.html import Markup
from ottla.console.parts.words import notice
from ottla.console.refusals import RefusedRequest, WrongInput
from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.errors import CommandError
from ottla.operations.failures import NO_ANSWER, message_of
from ottla.web.bodies import BodyRefused

log = logging.getLogger(__name__)

# What a form page says above the form, which keeps what was typed.
REFUSALS = (WrongInput, CommandError, ApiError, ClientError, RegistryError, RegistryUnreachable)

_STATUS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
}
# Why the fields of a form were not read, by the status of the answer.
_UNREAD = {
    408: ("the form did not come in time", "send it again"),
    413: ("the form is longer than the console takes", "the command line takes what is longer"),
    503: ("too many forms are being read", "try again in a moment"),
}


def failure_of(error: Exception, call: PageCall) -> tuple[int, str, str]:
    """Return the status, the sentence and the hint for an error; an unexpected one is logged with its traceback."""
    match error:
        case WrongInput() | RefusedRequest():
            return getattr(error, "status", 400), str(error), error.hint
        case BodyRefused():
            sentence, hint = _UNREAD.get(error.response.status_code, ("the form was not read", ""))
            return error.response.status_code, sentence, hint
        case CommandError():
            return 400, str(error), console_hint(error)
        case ApiError():
            return _STATUS.get(error.code, 400), error.text, console_hint(error)
        case RegistryUnreachable():
            return 502, str(error), "is the schema registry running? `ottla console --registry URL` names it"
        case RegistryError():
            return 404 if error.is_not_found else 400, str(error), ""
        case AuthenticationError():
            return 403, f"the cluster refuses this user: {error}", ""
        case _ if isinstance(error, NO_ANSWER):
            return 502, message_of(error), "are the brokers up? `ottla doctor`"
        case _:
            log.error("%s failed", call.path, exc_info=error)
            return 500, "this page failed: an error in the console", "its log says more"


def failed_page(status: int, sentence: str, hint: str) -> Page:
    """The page that says what is wrong."""
    titles = {
        400: "That is not possible",
        403: "Not allowed",
        404: "Not found",
        413: "Too long",
        500: "Failed",
        502: "No answer",
    }
    return Page(titles.get(status, "Not possible"), failed_notice(sentence, hint), status=status)


def failed_notice(sentence: str, hint: str) -> Markup:
    return notice(sentence, "bad", hint)
