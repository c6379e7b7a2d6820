"""A portion of a request as bytes for another controller, and the response in the bytes of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.loop.slices import Slices
from ottla.wire import api, compile
from ottla.wire.header import RequestHeader, ResponseHeader, request_header_version
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.server.api.dispatch import Route

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


async def response_in(answer: Forwarded, route: Route, slices: Slices) -> Response:
    """Return the response that the controller has encoded."""
    data = memoryview(answer.data)
    _, position = compile.decoder(ResponseHeader, route.header_version)(data, 0)
    decode = compile.step_decoder(api.response_class(route.endpoint.key), route.version)
    response, _ = await slices.finish(decode(data, position))
    return response
