"""Envelope (key 58): a broker forwards a client's request to the active controller (KIP-590).

Requests of many clients come over one connection: an error of one request is reported to the broker, which closes the
connection of the client that sent it, and no other.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Awaitable, Iterable
from struct import error as StructError

from ottla.log.files.disk import FileSlice
from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation
from ottla.security.principal import Principal
from ottla.server.api import dispatch
from ottla.server.api.context import Context, Peer
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.refusals import Outcome
from ottla.server.api.security.forwarded_principal import read_principal
from ottla.server.loop.later import Answer, AnswerFailed, Disconnect, Large
from ottla.server.quorum.not_controller import NotController
from ottla.wire.header import CLIENT_ID_AT, read_request_head
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.wire.types import Crowded, WireError

log = logging.getLogger(__name__)

_LENGTH_BYTES = 4
# The broker that forwarded the request then looks for the active controller.
_NOT_CONTROLLER = EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


@handles(EnvelopeRequest, needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)), on="controller")
def envelope(request: EnvelopeRequest, context: Context) -> Answer[EnvelopeResponse]:
    if not context.member.controller.active:
        return _NOT_CONTROLLER
    principal = read_principal(bytes(request.request_principal or b""))
    if principal is None:
        return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    frame = memoryview(request.request_data)
    try:
        key, version, correlation_id, head_end = read_request_head(frame)
        # Every forwarded request is checked with the rights of the client behind the broker.
        route = dispatch.routes_of(context.security.authorization).find(key, version)
        if route is None or not route.endpoint.in_envelopes:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        inner = context.beside(_client(request, context.connection, principal))
        inner.client_id, inner.request_version = bytes(frame[CLIENT_ID_AT:head_end]).decode(), version
        if context.span is not None:
            context.span.note("ottla.forwarded.api", route.endpoint.name)
            context.span.note("ottla.forwarded.client.id", inner.client_id)
        asked, _ = route.decode(frame, head_end)
    except Crowded:
        assert route is not None, "it was about to be decoded"
        return _crowded(route, frame, head_end, inner, correlation_id)
    except (WireError, StructError, IndexError, ValueError) as error:
        log.info("a request in an envelope is malformed: %s", error)
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    return _served(route, asked, inner, correlation_id)


async def _crowded(
    route: dispatch.Route, frame: memoryview, head_end: int, inner: Context, correlation_id: int
) -> EnvelopeResponse:
    """Decode and serve a request with very many elements in slices; its bytes are a copy, so they stay valid."""
    try:
        asked = await inner.runtime.slices.finish(route.decode_in_steps(frame, head_end))
    except WireError as error:
        log.info("a request in an envelope is malformed: %s", error)
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    inner.request_version = route.version
    answer = _served(route, asked, inner, correlation_id)
    return answer if isinstance(answer, EnvelopeResponse) else await answer


def _served(
    route: dispatch.Route, asked: Request[Response], inner: Context, correlation_id: int
) -> EnvelopeResponse | Awaitable[EnvelopeResponse]:
    try:
        answer = route.endpoint.decide(asked, inner)
        if isinstance(answer, NotController):
            return _NOT_CONTROLLER
        assert answer is not None, "a request to the controller is answered"
        if not isinstance(answer, Response):
            return _sealed_later(answer, route, correlation_id, inner)
        return _sealed(route.reply(answer, correlation_id))
    except Disconnect as reason:
        log.info("a request in an envelope is refused: %s", reason)
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    except Exception:
        return _failed()


async def _sealed_later(
    answer: Large[Outcome] | Awaitable[Outcome | Large[Outcome]],
    route: dispatch.Route,
    correlation_id: int,
    inner: Context,
) -> EnvelopeResponse:
    try:
        outcome = answer if isinstance(answer, Large) else await answer
        if isinstance(outcome, NotController):
            return _NOT_CONTROLLER
        if not isinstance(outcome, Large):
            return _sealed(route.reply(outcome, correlation_id))
        assert isinstance(outcome.response, Response), "no refusal is large"
        steps = route.reply_in_steps(outcome.response, correlation_id)
        return _sealed(await inner.runtime.slices.finish(steps))
    except AnswerFailed:
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    except Exception:
        return _failed()


def _failed() -> EnvelopeResponse:
    log.exception("a request in an envelope failed")
    return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)


def _sealed(parts: Iterable[dispatch.Part]) -> EnvelopeResponse:
    frame = bytearray()
    for part in parts:
        assert not isinstance(part, FileSlice), "no response of the controller has records"
        frame += part
    return EnvelopeResponse(response_data=bytes(frame[_LENGTH_BYTES:]), error_code=0)


def _client(request: EnvelopeRequest, forwarder: Peer, principal: Principal) -> Peer:
    """Return the client behind the broker; the listener it uses does not matter here."""
    address = str(ipaddress.ip_address(bytes(request.client_host_address)))
    return Peer(
        forwarder.listener,
        forwarder.local_address,
        (address, 0),
        controller=True,
        principal=principal,
        forwarded=True,
    )
