"""The headers of requests and responses.

The header's version follows from the message's: flexible messages have flexible headers. Two exceptions: a request's
client id is never compact, and the response to ApiVersions always has the oldest header, since a client may not yet
know which versions the node supports.
"""

from __future__ import annotations

from functools import cache

from ottla.wire.api import request_class
from ottla.wire.message import Data, on
from ottla.wire.types import Int16, Int32, String

_API_VERSIONS = 18


class RequestHeader(Data, versions="1-2", flexible="2+"):
    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: String | None = on("0+", None, flexible="none")


class ResponseHeader(Data, versions="0-1", flexible="1+"):
    correlation_id: Int32


@cache
def request_header_version(key: int, version: int) -> int:
    return 2 if version in request_class(key).flexible else 1


@cache
def response_header_version(key: int, version: int) -> int:
    return 1 if version in request_class(key).flexible and key != _API_VERSIONS else 0
