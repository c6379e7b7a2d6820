"""Errors in the form of the REST API: `{"error_code": …, "message": …}`, with Confluent's codes."""

from __future__ import annotations

from starlette.responses import Response

from ottla.model import limits
from ottla.registry.port import ForwardFailed, NotLeader, Unavailable
from ottla.registry.security.refusals import Forbidden, Unauthorized
from ottla.schemas.registry.refusal import RegistryRefusal
from ottla.web.answers import error_answer
from ottla.web.password_turns import TooBusy


class BadRequest(Exception):
    """An invalid request: unknown path or method, not JSON, or not of the required form."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


# The exceptions that become an error answer.
EXPECTED = (BadRequest, RegistryRefusal, NotLeader, Unavailable, ForwardFailed, Unauthorized, Forbidden, TooBusy)


def answer_of(error: Exception, media_type: str) -> Response:
    """Return the answer for an expected error."""
    match error:
        case BadRequest():
            return error_answer(error.code, error.message, media_type=media_type)
        case RegistryRefusal():
            return error_answer(error.code, error.message, status=error.status, media_type=media_type)
        case Unauthorized():
            answer = error_answer(40101, "User authentication failed", media_type=media_type)
            for challenge in error.challenges:
                answer.headers.append("www-authenticate", challenge)
            return answer
        case Forbidden():
            return error_answer(40301, str(error), media_type=media_type)
        case TooBusy():
            answer = error_answer(503, "Too many users are being authenticated; try again", media_type=media_type)
            answer.headers["retry-after"] = str(limits.PASSWORD_RETRY_AFTER_S)
            return answer
        case Unavailable() if error.timed_out:
            return error_answer(50002, str(error), media_type=media_type)
        case Unavailable():
            return error_answer(50001, f"Error in the backend data store: {error}", media_type=media_type)
        case ForwardFailed():
            return error_answer(50003, f"Error while forwarding to the leader: {error}", media_type=media_type)
        case NotLeader():
            return error_answer(50004, "Leader not known.", media_type=media_type)
    raise AssertionError(f"{error!r} was not expected")
