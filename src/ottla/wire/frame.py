"""Messages as they travel: a length, a header, a body."""

from __future__ import annotations

from struct import Struct as Layout
from typing import Any

from ottla.wire.compile import encoder
from ottla.wire.header import RequestHeader, ResponseHeader, request_header_version, response_header_version
from ottla.wire.message import Request, Response
from ottla.wire.types import WireError

_LENGTH = Layout(">i")


def request_frame(message: Request, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A request with its length and header."""
    key = type(message).key
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    out = bytearray(4)
    splices: list[tuple[int, Any]] = []
    encoder(RequestHeader, request_header_version(key, version))(header, out, splices)
    encoder(type(message), version)(message, out, splices)
    if splices:
        raise WireError("the records of a request must be bytes")
    _LENGTH.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def response_parts(message: Response, version: int, correlation_id: int) -> list[Any]:
    """A response with its length and header, as pieces to send in order: bytes, and the records that were not bytes."""
    out = bytearray(4)
    splices: list[tuple[int, Any]] = []
    header = response_header_version(type(message).key, version)
    encoder(ResponseHeader, header)(ResponseHeader(correlation_id=correlation_id), out, splices)
    encoder(type(message), version)(message, out, splices)
    if not splices:
        _LENGTH.pack_into(out, 0, len(out) - 4)
        return [out]
    return _woven(out, splices)


def _woven(out: bytearray, splices: list[tuple[int, Any]]) -> list[Any]:
    parts: list[Any] = []
    view = memoryview(out)
    start, spliced_bytes = 0, 0
    for position, records in splices:
        if position > start:
            parts.append(view[start:position])
            start = position
        for piece in records if isinstance(records, list | tuple) else (records,):
            if len(piece):
                parts.append(piece)
                spliced_bytes += len(piece)
    if start < len(out):
        parts.append(view[start:])
    _LENGTH.pack_into(out, 0, len(out) - 4 + spliced_bytes)
    return parts
