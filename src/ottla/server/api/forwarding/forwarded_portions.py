"""A part of a request as bytes for another controller, and the response in the bytes of its answer."""

from __future__ import annotations

from typing import TypeVar, cast

from ottla.server.loop.slices import Slices
from ottla.wire import api, compile
from ottla.wire.header import RequestHeader, ResponseHeader, request_header_version, response_header_version
from ottla.wire.message import Request, Response

ResponseT = TypeVar("ResponseT", bound=Response)

_CORRELATION_ID = 0  # the answer comes in an envelope of its own


async def encoded(request: Request[Response], version: int, client_id: str, slices: Slices) -> bytes:
    """Return the request with its header, as a client of this version would have sent it."""
    key = type(request).key
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=_CORRELATION_ID, client_id=client_id
    )
    frame = bytearray(compile.encode(header, request_header_version(key, version)))
    await slices.finish(compile.step_encoder(type(request), version)(request, frame, []))
    return bytes(frame)


async def response_in(answer: bytes, kind: type[Request[ResponseT]], version: int, slices: Slices) -> ResponseT:
    """Return the response to a request of this kind and version, as the controller has encoded it."""
    data = memoryview(answer)
    _, position = compile.decoder(ResponseHeader, response_header_version(kind.key, version))(data, 0)
    decode = compile.step_decoder(api.response_class(kind.key), version)
    response, _ = await slices.finish(decode(data, position))
    return cast("ResponseT", response)
