"""The headers of requests and responses.

The header's version follows from the message's: flexible messages have flexible headers. Two exceptions: a request's
client id is never compact, and the response to ApiVersions always has the oldest header, since a client may not yet
know which versions the node supports.
"""

from __future__ import annotations

from functools import cache
from struct import Struct as Layout

from ottla.wire.api import request_class
from ottla.wire.message import Data, on
from ottla.wire.types import Bytes, Int16, Int32, String

# The beginning of every request: key, version, correlation id, length of the client id that follows (-1: none).
_REQUEST_HEAD = Layout(">hhih")
CLIENT_ID_AT = _REQUEST_HEAD.size

_API_VERSIONS = 18


def read_request_head(frame: memoryview) -> tuple[int, int, int, int]:
    """Return the key, version and correlation id of a request, and where its client id ends, which begins at
    `CLIENT_ID_AT`. Raises struct.error.
    """
    key, version, correlation_id, client_id_size = _REQUEST_HEAD.unpack_from(frame)
    return key, version, correlation_id, CLIENT_ID_AT + client_id_size if client_id_size > 0 else CLIENT_ID_AT


class RequestHeader(Data, versions="1-2", flexible="2+"):
    request_api_key: Int16
    request_api_version: Int16
    correlation_id: Int32
    client_id: String | None = on("0+", None, flexible="none")
    trace_parent: Bytes | None = on("2+", None, tag=10_000)  # between our nodes: the trace that the request is part of


class ResponseHeader(Data, versions="0-1", flexible="1+"):
    correlation_id: Int32


@cache
def request_header_version(key: int, version: int) -> int:
    return 2 if version in request_class(key).flexible else 1


@cache
def response_header_version(key: int, version: int) -> int:
    return 1 if version in request_class(key).flexible and key != _API_VERSIONS else 0
