"""Envelopes: a request in the form in which a broker passes it on to the active controller (KIP-590).

A controller that is gone or no longer leads is asked for until another one answers. When none does in time, the
request's own handler says REQUEST_TIMED_OUT in the form of its answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.forwarding import Forwarded
from ottla.server.loop.later import FAILED, Later
from ottla.server.quorum.controller_link import is_refused_by_role
from ottla.wire import compile
from ottla.wire.journal.principal import DefaultPrincipalData
from ottla.wire.message import Request
from ottla.wire.messages.cluster.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from ottla.server.api.dispatch import Route
    from ottla.server.quorum.controller_link import ControllerChannel

log = logging.getLogger(__name__)

_VERSION = 0  # of the principal's form
_ANONYMOUS = _VERSION.to_bytes(2, "big") + compile.encode(
    DefaultPrincipalData(type="User", name="ANONYMOUS", token_authenticated=False), _VERSION
)


async def forward(
    channel: ControllerChannel, route: Route, request: Request, frame: bytes, context: Context, version: int
) -> Any:
    """The answer of the active controller, wherever it comes to be, within the time that the client gave."""
    services, loop = context.services, asyncio.get_running_loop()
    wanted_ms = getattr(request, "timeout_ms", limits.CONTROLLER_ANSWER_MS)
    # Who gave no time at all is answered all the same if the controller is there.
    timeout_ms = min(max(wanted_ms, limits.CONTROLLER_RETRY_MS * 10), limits.CONTROLLER_ANSWER_MS)
    deadline_s = loop.time() + timeout_ms / 1000
    envelope = EnvelopeRequest(
        request_data=frame,
        request_principal=_ANONYMOUS,
        client_host_address=_packed(context.connection.remote_address[0]),
    )
    while True:
        before = (services.quorum.leader_id, services.quorum.epoch)
        left_ms = int((deadline_s - loop.time()) * 1000)
        if left_ms <= 0:
            return await _refused(route, request, context, version)
        address = services.quorum.leader_address()
        try:
            if services.controller.active:
                answer = await _handled(route, request, context, version)
                if answer is FAILED or not is_refused_by_role(answer):
                    return answer
            elif address is not None:
                # A request that times out takes the connection with it, and so the answers of other clients: one that
                # is in a hurry goes by itself.
                timeout_ms = limits.CONTROLLER_ANSWER_MS
                asking = services.peers.ask(
                    address, envelope, timeout_ms=timeout_ms, purpose="forwarding", patient=False
                )
                async with asyncio.timeout(left_ms / 1000):
                    reply: EnvelopeResponse = await channel.unless_moved(asking, before)
                if not reply.error_code:
                    return Forwarded(bytes(reply.response_data or b""))
                if reply.error_code != ErrorCode.NOT_CONTROLLER:
                    log.error("the controller refused %s: error %d", route.endpoint.name, reply.error_code)
                    return FAILED
        except TimeoutError:
            continue
        except ClientError as error:
            log.info("%s was not forwarded: %s", route.endpoint.name, error)
        await channel.next_controller(before)


async def _handled(route: Route, request: Request, context: Context, version: int, controller: Any = None) -> Any:
    """The handler's answer, in a context of its own: that of the connection has gone on to other requests."""
    own = Context(context.services, context.connection)
    own.client_id, own.request_version = context.client_id, version
    if controller is not None:
        own.controller = controller
    answer: Any = route.handler(request, own)
    return await answer if isinstance(answer, Awaitable) else answer


async def _refused(route: Route, request: Request, context: Context, version: int) -> Any:
    return await _handled(route, request, context, version, _NobodyAnswers())


class _NobodyAnswers:
    """Stands for a controller that could not be reached."""

    active = False

    def submit(self, command: Any) -> Later[Any]:
        later: Later[Any] = Later()
        later.set(_timed_out())
        return later

    def ask(self, command: Any, respond: Callable[[Any], Any], refuse: Callable[[ApiError], Any]) -> Any:
        return refuse(_timed_out())

    @property
    def view(self) -> Any:
        raise _timed_out()


def _timed_out() -> ApiError:
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "The request timed out before the controller could handle it.")


def _packed(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).packed
    except ValueError:
        return ipaddress.ip_address("0.0.0.0").packed
