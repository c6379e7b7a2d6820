"""Sealed requests: a part of a client's request that a broker sends to the active controller, in an Envelope.

The controller checks it with the rights of the client, and not with those of the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.client.address import Address
from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.forwarding.envelopes import ask_in_envelope, envelope_of
from ottla.server.api.forwarding.forwarded_portions import encoded, response_in
from ottla.server.peers.peers import Peers
from ottla.server.quorum.controller_link import Send
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response

ResponseT = TypeVar("ResponseT", bound=Response)


def sealed(
    request: Request[ResponseT], context: Context, errors: Callable[[ResponseT], Iterable[int]]
) -> Send[ResponseT]:
    """Return what sends the request for the client of `context`, in its latest version."""
    kind, slices = type(request), context.runtime.slices
    version = kind.versions.high

    async def send(peers: Peers, address: Address, left_ms: int) -> ResponseT | NotController:
        frame = await encoded(request, version, context.client_id, slices)
        envelope = envelope_of(frame, context)
        reply = await ask_in_envelope(peers, address, envelope, timeout_ms=left_ms, name=kind.name)
        if isinstance(reply, NotController):
            return reply
        response = await response_in(reply, kind, version, slices)
        return NotController() if ErrorCode.NOT_CONTROLLER in errors(response) else response

    return send
