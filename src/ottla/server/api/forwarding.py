"""Forwarding: requests that only the active controller may handle (KIP-590).

If this node is the active controller, its handlers get them like all others. Otherwise the bytes of the request are
sent to the active controller unchanged, and the bytes of its answer come back unchanged, with the same correlation id.
The client does not notice if the first node asked is no longer the controller: the next one is found within the
client's timeout.
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

    def handle(self, route: Route, request: Request[Response], frame: memoryview, context: Context) -> Answer[Any]:
        """Return the answer of the active controller, here or on another node."""
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
        self,
        answer: Later[Any] | Any,
        route: Route,
        request: Request[Response],
        frame: bytes,
        context: Context,
        version: int,
    ) -> Any:
        """Return the answer, or forward the request if this node stopped being the controller before it was
        committed.
        """
        outcome = await answer
        if not isinstance(outcome, NotController):
            return outcome
        return await self._forward(route, request, frame, context, version)

    async def _forward(
        self, route: Route, request: Request[Response], frame: bytes, context: Context, version: int
    ) -> Any:
        from ottla.server.api.envelopes import forward  # a single node never needs it

        return await forward(self._link, self._peers, route, request, frame, context, version)
