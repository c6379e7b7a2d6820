"""Forwarding: requests that only the active controller may handle (KIP-590).

If this node is the active controller, its handlers get them like all others. Otherwise the bytes of the request are
sent to the active controller unchanged, and the bytes of its answer come back unchanged, with the same correlation id.
The client does not notice if the first node asked is no longer the controller: the next one is found within the
client's timeout.

A request with very many items is divided here already, and its portions are sent one after the other: if another
controller takes over in the middle, or the first one is lost, it gets only the portions that are not decided yet.

A request that waits for the controller keeps its turn, as in Kafka: it stays in the receive buffer, so its memory is
counted, and the changes that one connection asks for are made in their order.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.model import limits
from ottla.server.api.context import Context
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.api.outcomes import outcome_of
from ottla.server.api.refusals import Outcome
from ottla.server.api.turns import hold_while
from ottla.server.loop.later import Answer, Large
from ottla.server.peers.peers import Peers
from ottla.server.quorum.controller_link import ControllerLink
from ottla.server.quorum.not_controller import NotController
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.server.api.dispatch import Route


class Forwarding:
    def __init__(self, link: ControllerLink, peers: Peers) -> None:
        self._link = link
        self._peers = peers

    def handle(
        self, route: Route, request: Request[Response], frame: memoryview, context: Context
    ) -> Answer[Outcome | Forwarded]:
        """Return the answer of the active controller, here or on another node."""
        version = context.request_version
        timeout_ms = _timeout_ms(request)
        refusing = route.endpoint.refusing
        if refusing is not None and refusing.divides(request):
            deadline_s = context.runtime.loop.time() + timeout_ms / 1000
            return refusing.decide_each(
                request, context, lambda some, own: self._decide_portion(route, some, own, version, deadline_s)
            )
        if not context.member.controller.active:
            return hold_while(context, self._forward(route, request, frame, context, version, timeout_ms))
        answer = route.endpoint.decide(request, context)
        if answer is None or isinstance(answer, Response | Large):
            return answer
        if isinstance(answer, NotController):
            return hold_while(context, self._forward(route, request, frame, context, version, timeout_ms))
        return hold_while(context, self._unless_lost(answer, route, request, frame, context, version))

    async def _unless_lost(
        self,
        answer: Awaitable[Outcome | Large[Outcome]],
        route: Route,
        request: Request[Response],
        frame: memoryview,
        context: Context,
        version: int,
    ) -> Outcome | Forwarded | Large[Outcome]:
        """Return the answer, or forward the request if this node stopped being the controller before it was
        committed.
        """
        outcome = await answer
        if not isinstance(outcome, NotController):
            return outcome
        return await self._forward(route, request, frame, context, version, _timeout_ms(request))

    async def _decide_portion(
        self, route: Route, request: Request[Response], context: Context, version: int, deadline_s: float
    ) -> Outcome:
        """Return the active controller's response to a portion of a request."""
        if context.member.controller.active:
            outcome = await outcome_of(route.endpoint.decide(request, context))
            if not isinstance(outcome, NotController):
                return outcome
        from ottla.server.api.forwarding.forwarded_portions import (  # only here: a node alone never needs it
            encoded,
            response_in,
        )

        slices = context.runtime.slices
        frame = await encoded(request, version, context.client_id, slices)
        left_ms = int((deadline_s - context.runtime.loop.time()) * 1000)
        answer = await self._forward(route, request, frame, context, version, left_ms)
        if not isinstance(answer, Forwarded):
            return answer
        return await response_in(answer.data, route.endpoint.request, version, slices)

    async def _forward(
        self,
        route: Route,
        request: Request[Response],
        frame: bytes | memoryview,
        context: Context,
        version: int,
        timeout_ms: int,
    ) -> Outcome | Forwarded:
        from ottla.server.api.forwarding.envelopes import forward  # only here: a node alone never needs it

        return await forward(self._link, self._peers, route, request, frame, context, version, timeout_ms)


def _timeout_ms(request: Request[Response]) -> int:
    """Return how long the client waits for the controller. A timeout of 0 is raised a little, so that the request
    succeeds if the controller is available.
    """
    wanted_ms: int = getattr(request, "timeout_ms", limits.CONTROLLER_ANSWER_MS)
    return min(max(wanted_ms, limits.CONTROLLER_RETRY_MS * 10), limits.CONTROLLER_ANSWER_MS)
