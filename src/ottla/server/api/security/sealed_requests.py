"""Sealed requests: a part of a client's request that a broker sends to the active controller, in an Envelope.

The controller checks it with the rights of the client, and not with those of the broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from ottla.client.address import Address
from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.forwarding.envelopes import envelope_of
from ottla.server.api.forwarding.forwarded_portions import encoded
from ottla.server.loop.later import AnswerFailed
from ottla.server.peers.peers import Peers
from ottla.server.quorum.controller_link import Send
from ottla.server.quorum.not_controller import NotController
from ottla.wire import api, compile
from ottla.wire.header import ResponseHeader, response_header_version
from ottla.wire.message import Request, Response

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound=Response)


def sealed(
    request: Request[ResponseT], context: Context, errors: Callable[[ResponseT], Iterable[int]]
) -> Send[ResponseT]:
    """Return what sends the request for the client of `context`, in its latest version."""
    kind, slices = type(request), context.runtime.slices
    key, version = kind.key, kind.versions.high

    async def send(peers: Peers, address: Address, left_ms: int) -> ResponseT | NotController:
        frame = await encoded(request, version, context.client_id, slices)
        reply = await peers.ask(
            address, envelope_of(frame, context), timeout_ms=left_ms, purpose="forwarding", patient=False
        )
        if reply.error_code == ErrorCode.NOT_CONTROLLER:
            return NotController()
        if reply.error_code:
            log.error("the controller refused %s: error %d", kind.name, reply.error_code)
            raise AnswerFailed
        data = memoryview(reply.response_data or b"")
        _, position = compile.decoder(ResponseHeader, response_header_version(key, version))(data, 0)
        decode = compile.step_decoder(api.response_class(key), version)
        response = cast("ResponseT", (await slices.finish(decode(data, position)))[0])
        return NotController() if ErrorCode.NOT_CONTROLLER in errors(response) else response

    return send
