"""Forwarding: requests that only the active controller may handle (KIP-590).

Where this node is the active controller they go to their handlers like all others. Else the bytes of the request go to
the node that is, as they came, and the bytes of its answer come back as they are, with the same correlation id. The
client does not notice that a node was asked that no longer is the controller: the next one is found within the time
that the client gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.server.api.context import Context
from ottla.server.loop.later import Answer, Large, Later, Sliced
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

    def handle(self, route: Route, request: Request, frame: memoryview, context: Context) -> Answer[Any]:
        """The answer of the active controller, here or elsewhere."""
        version = context.request_version
        if not context.member.controller.active:
            return self._forward(route, request, bytes(frame), context, version)
        answer = route.endpoint.decide(request, context)
        if answer is None or isinstance(answer, Response | Large):
            return answer
        if isinstance(answer, NotController):
            return self._forward(route, request, bytes(frame), context, version)
        waiting = self._unless_lost(answer, route, request, bytes(frame), context, version)
        return Sliced(waiting, changes=answer.changes) if isinstance(answer, Sliced) else waiting

    async def _unless_lost(
        self, answer: Later[Any] | Any, route: Route, request: Request, frame: bytes, context: Context, version: int
    ) -> Any:
        """The answer, unless this node ceased to be the controller before it was committed."""
        outcome = await answer
        if not isinstance(outcome, NotController):
            return outcome
        return await self._forward(route, request, frame, context, version)

    async def _forward(self, route: Route, request: Request, frame: bytes, context: Context, version: int) -> Any:
        from ottla.server.api.envelopes import forward  # a node that is alone never needs it

        return await forward(self._link, self._peers, route, request, frame, context, version)
