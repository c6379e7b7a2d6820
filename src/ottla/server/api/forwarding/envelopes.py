"""Envelopes: the requests in which a broker forwards a client's request to the active controller (KIP-590).

If no controller answers in time, the client gets REQUEST_TIMED_OUT in the response of its own request's kind.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import TYPE_CHECKING

from ottla.client.address import Address
from ottla.client.errors import RequestTimedOut
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.api.outcomes import outcome_of
from ottla.server.api.refusals import Outcome
from ottla.server.api.security.forwarded_principal import principal_bytes
from ottla.server.loop.later import AnswerFailed
from ottla.server.peers.peers import Peers
from ottla.server.quorum.controller_link import ControllerLink, controller_timed_out, within
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.envelope import EnvelopeRequest

if TYPE_CHECKING:
    from ottla.server.api.dispatch import Route

log = logging.getLogger(__name__)


async def forward(
    link: ControllerLink,
    peers: Peers,
    route: Route,
    request: Request[Response],
    frame: bytes | memoryview,
    context: Context,
    version: int,
    timeout_ms: int,
) -> Outcome | Forwarded:
    """Return the answer of the active controller, on whichever node it is, within the timeout."""
    envelope = envelope_of(frame, context)
    # A context of its own: this request may be carried out here after the connection is gone.
    own = context.beside(context.connection._replace(principal=context.principal))
    own.client_id, own.request_version = context.client_id, version
    name = route.endpoint.name

    async def here(_: int) -> Outcome | Forwarded:
        return await outcome_of(route.endpoint.decide(request, own))

    async def there(address: Address, left_ms: int) -> Outcome | Forwarded:
        # A request that times out closes its connection, and with it the requests of other clients: if the client's
        # timeout is shorter, this only stops waiting for the answer.
        asking = ask_in_envelope(peers, address, envelope, timeout_ms=limits.CONTROLLER_ANSWER_MS, name=name)
        reply = await within(left_ms, asking, f"{name} was not answered in time")
        return reply if isinstance(reply, NotController) else Forwarded(reply, route.throttle_at)

    try:
        return await link.reach(here, there, name=name, timeout_ms=timeout_ms)
    except RequestTimedOut as error:
        log.info("%s was not forwarded: %s", name, error)
        own.request_version = version
        return await outcome_of(route.endpoint.refused(request, own, controller_timed_out()))


def envelope_of(frame: bytes | memoryview, context: Context) -> EnvelopeRequest:
    """Return a request of the client of `context`, with the client's principal and address."""
    return EnvelopeRequest(
        request_data=bytes(frame),
        request_principal=principal_bytes(context.principal),
        client_host_address=_packed(context.connection.remote_address[0]),
    )


async def ask_in_envelope(
    peers: Peers, address: Address, envelope: EnvelopeRequest, *, timeout_ms: int, name: str
) -> bytes | NotController:
    """Return the controller's answer to the request in the envelope, of the API `name`, with its header.

    Raise AnswerFailed if the controller refuses the envelope, which is no answer to the client.
    """
    reply = await peers.ask(address, envelope, timeout_ms=timeout_ms, purpose="forwarding", patient=False)
    if reply.error_code == ErrorCode.NOT_CONTROLLER:
        return NotController()
    if reply.error_code:
        log.error("the controller refused %s: error %d", name, reply.error_code)
        raise AnswerFailed
    return bytes(reply.response_data or b"")


def _packed(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return ipaddress.ip_address("0.0.0.0").packed
