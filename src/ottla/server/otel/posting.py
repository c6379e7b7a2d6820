"""One push: a POST of OTLP over HTTP. It blocks, so a thread does it."""

from __future__ import annotations

import gzip
import http.client
from http import HTTPStatus
from typing import NamedTuple

from ottla.client.errors import AuthenticationError
from ottla.client.security.tls import Store, Tls
from ottla.client.security.web import bounded_connection
from ottla.model import limits
from ottla.model.settings.own import OTTLA_OTEL_CA_FILE
from ottla.model.version import VERSION
from ottla.server.settings.otel_place import OtelPlace
from ottla.telemetry.export.answers import Rejected, reason_in, rejected_in

_HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "gzip",
    "Connection": "close",
    "User-Agent": f"ottla/{VERSION}",
}
# OTLP: only these mean that the same push may succeed later.
_PASSING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_COMPRESSION = 1  # what is pushed is full of repetitions


class PushFailed(Exception):
    """One line for the log. `passes`: whether the same push may succeed later, after `retry_ms` at the earliest."""

    def __init__(self, reason: str, *, passes: bool, retry_ms: int = 0) -> None:
        super().__init__(reason)
        self.passes = passes
        self.retry_ms = retry_ms


class AcceptedPush(NamedTuple):
    sent_bytes: int
    rejected: Rejected


def post(place: OtelPlace, signal: str, body: bytes) -> AcceptedPush:
    """Push an encoded message; raise PushFailed."""
    data = gzip.compress(body, _COMPRESSION, mtime=0)
    trusted = None if place.ca_file is None else Store(OTTLA_OTEL_CA_FILE.name, path=place.ca_file)
    try:
        with bounded_connection(place.url, limits.OTEL_PUSH_S, Tls(trusted=trusted)) as connection:
            connection.request("POST", f"{place.url.path}/v1/{signal}", data, place.headers | _HEADERS)
            with connection.getresponse() as answer:
                told = answer.read(limits.OTEL_ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException, AuthenticationError) as error:
        raise PushFailed(_shown(str(error) or type(error).__name__), passes=True) from None
    if answer.status != HTTPStatus.OK:
        reason = reason_in(told) if _is_protobuf(answer) else ""
        raise PushFailed(
            _shown(f"status {answer.status}" + (f", {reason}" if reason else "")),
            passes=answer.status in _PASSING,
            retry_ms=_retry_ms(answer),
        )
    return AcceptedPush(len(data), rejected_in(told) if _is_protobuf(answer) else Rejected(0, ""))


def _is_protobuf(answer: http.client.HTTPResponse) -> bool:
    return answer.headers.get_content_type() == "application/x-protobuf"


def _retry_ms(answer: http.client.HTTPResponse) -> int:
    """Return what Retry-After asks for, which may be a date; that is not worth reading here."""
    text = answer.headers.get("Retry-After", "")
    return int(text) * 1000 if text.isascii() and text.isdecimal() and len(text) < 10 else 0


def _shown(reason: str) -> str:
    return reason.encode("ascii", "backslashreplace").decode()[: limits.OTEL_REASON_CHARS_MAX]
