"""Frames: a length, a header, and the body of a message."""

from __future__ import annotations

from collections.abc import Callable, Generator
from struct import Struct as Layout
from typing import Any

from ottla.wire.compile import Splices, encoder
from ottla.wire.header import RequestHeader, request_header_version, response_header_version
from ottla.wire.message import Request, Response
from ottla.wire.types import WireError
from ottla.wire.varint import SEVERAL

Encode = Callable[[Any, bytearray, Splices], None]  # of one class of messages
Parts = list[Any]  # bytes, and records that are not bytes

_LENGTH = Layout(">i")
# The length, then a ResponseHeader of version 0 or 1, which is small enough to be packed directly.
_RESPONSE_HEADS = (Layout(">ii"), Layout(">iix"))


def request_frame(
    message: Request[Response],
    version: int,
    correlation_id: int,
    client_id: str | None,
    trace_parent: bytes | None = None,
) -> bytes:
    """Encode a request with its length and header. Old headers have no `trace_parent`."""
    key = type(message).key
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
        trace_parent=trace_parent,
    )
    out = bytearray(4)
    splices: Splices = []
    encoder(RequestHeader, request_header_version(key, version))(header, out, splices)
    encoder(type(message), version)(message, out, splices)
    if splices:
        raise WireError("the records of a request must be bytes")
    _LENGTH.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def response_parts(message: Response, version: int, correlation_id: int) -> Parts:
    """Encode a response with length and header, as parts to send in order: bytes, and records that are not bytes."""
    cls = type(message)
    return framed(message, encoder(cls, version), response_header_version(cls.key, version), correlation_id)


def framed(message: Response, encode: Encode, header_version: int, correlation_id: int) -> Parts:
    """Like `response_parts`, if the caller has looked up the encoder and the header version already."""
    out = bytearray(_RESPONSE_HEADS[header_version].pack(0, correlation_id))
    splices: Splices = []
    encode(message, out, splices)
    return _closed(out, splices)


def framed_in_steps(
    message: Response, encode: Callable[..., Generator[None, None, None]], header_version: int, correlation_id: int
) -> Generator[None, None, Parts]:
    """Like `framed`, with an encoder that works in steps."""
    out = bytearray(_RESPONSE_HEADS[header_version].pack(0, correlation_id))
    splices: Splices = []
    yield from encode(message, out, splices)
    return _closed(out, splices)


def _closed(out: bytearray, splices: Splices) -> Parts:
    if not splices:
        _LENGTH.pack_into(out, 0, len(out) - 4)
        return [out]
    return _woven(out, splices)


def _woven(out: bytearray, splices: Splices) -> Parts:
    parts: Parts = []
    view = memoryview(out)
    start = 0
    total_bytes = len(out) - 4
    for position, records in splices:
        if position > start:
            parts.append(view[start:position])
            start = position
        for piece in records if isinstance(records, SEVERAL) else (records,):
            piece_bytes = len(piece)
            if piece_bytes:
                parts.append(piece)
                total_bytes += piece_bytes
    if start < len(out):
        parts.append(view[start:])
    _LENGTH.pack_into(out, 0, total_bytes)
    return parts
