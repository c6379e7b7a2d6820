"""Forwarding: requests that only the active controller may handle (KIP-590).

Where it is here they go to their handlers like all others. Else the bytes of the request go there as they came and
those of the answer come back as they are, with the same correlation id. The client never learns that a controller was
asked that no longer is one: another is found within the time that the client gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.server.api.context import Context
from ottla.server.loop.later import FAILED, Answer, Large, Sliced
from ottla.server.quorum.controller_link import is_refused_by_role
from ottla.wire.message import Request, Response

if TYPE_CHECKING:
    from ottla.server.api.dispatch import Route
    from ottla.server.quorum.controller_link import ControllerChannel


class Forwarded:
    """An answer as the controller wrote it, header included."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def parts(self) -> list[Any]:
        """The frame of it."""
        return [len(self.data).to_bytes(4, "big") + self.data]


class Forwarding:
    def __init__(self, channel: ControllerChannel) -> None:
        self._channel = channel

    def handle(self, route: Route, request: Request, frame: memoryview, context: Context) -> Answer[Any]:
        """The answer of the active controller, here or elsewhere."""
        if not context.controller.active:
            return self._forward(route, request, bytes(frame), context, context.request_version)
        answer = route.handler(request, context)
        if answer is None or isinstance(answer, Response):
            return answer
        waiting = self._unless_lost(answer, route, request, bytes(frame), context, context.request_version)
        return Sliced(waiting, changes=answer.changes) if isinstance(answer, Sliced) else waiting

    async def _unless_lost(
        self, answer: Any, route: Route, request: Request, frame: bytes, context: Context, version: int
    ) -> Any:
        """The answer, unless the lead was lost before it was committed."""
        if answer.__class__ is not Large:
            answer = await answer
        if answer is FAILED or answer.__class__ is Large or not is_refused_by_role(answer):
            return answer
        return await self._forward(route, request, frame, context, version)

    async def _forward(self, route: Route, request: Request, frame: bytes, context: Context, version: int) -> Any:
        from ottla.server.api.envelopes import forward  # a node that is alone never needs it

        return await forward(self._channel, route, request, frame, context, version)
