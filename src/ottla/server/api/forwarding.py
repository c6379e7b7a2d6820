"""Forwarding: requests that only the active controller may handle (KIP-590).

If this node is the active controller, its handlers get them like all others. Otherwise the bytes of the request are
sent to the active controller unchanged, and the bytes of its answer come back unchanged, with the same correlation id.
The client does not notice if the first node asked is no longer the controller: the next one is found within the
client's timeout.

A request that waits for the controller keeps its turn, as in Kafka: it stays in the receive buffer, so its memory is
counted, and the changes that one connection asks for are made in their order.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ottla.server.api.context import Context
from ottla.server.api.forwarded_answer import Forwarded
from ottla.server.api.refusals import Outcome
from ottla.server.api.turns import hold_while
from ottla.server.loop.later import Answer, Large, Sliced
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
        if not context.member.controller.active:
            return hold_while(context, self._forward(route, request, frame, context, version))
        answer = route.endpoint.decide(request, context)
        if answer is None or isinstance(answer, Response | Large):
            return answer
        if isinstance(answer, NotController):
            return hold_while(context, self._forward(route, request, frame, context, version))
        waiting = self._unless_lost(answer, route, request, frame, context, version)
        if isinstance(answer, Sliced):  # keeps its turn, too
            return Sliced(waiting, changes=answer.changes)
        return hold_while(context, waiting)

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
        return await self._forward(route, request, frame, context, version)

    async def _forward(
        self, route: Route, request: Request[Response], frame: memoryview, context: Context, version: int
    ) -> Outcome | Forwarded:
        from ottla.server.api.envelopes import forward  # a single node never needs it

        return await forward(self._link, self._peers, route, request, frame, context, version)
