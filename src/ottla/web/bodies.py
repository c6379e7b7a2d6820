"""Bounds on request bodies: a body that is too long is refused, and never held in memory as a whole.

The body is read before the application is called, which gets it in one piece: all our handlers need all of it.

Rules:
- The total size of all bodies is bounded too: a request without room is answered with 503.
- A body that does not come in time is not waited for (408), so that no client can occupy the room for ever.
"""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.model import limits
from ottla.web.answers import error_answer

BODY_S = 30.0


class BodyBound:
    """Middleware that accepts bodies of up to `bytes_max`, of all requests together up to `all_bytes_max`."""

    def __init__(
        self,
        app: ASGIApp,
        bytes_max: int,
        *,
        all_bytes_max: int = limits.HTTP_BODIES_BYTES_MAX,
        patience_s: float = BODY_S,
    ) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._all_bytes_max = all_bytes_max
        self._patience_s = patience_s
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parts: list[bytes] = []
        try:
            refusal = await self._read(scope, receive, parts)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            waiting: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

            async def replay() -> Message:
                return waiting.pop() if waiting else await receive()

            await self._app(scope, replay, send)
        finally:
            self._held_bytes -= sum(map(len, parts))

    async def _read(self, scope: Scope, receive: Receive, parts: list[bytes]) -> Response | None:
        """Read all parts of the body; return an error answer if it is refused."""
        too_long = error_answer(413, f"The request body is longer than {self._bytes_max} bytes")
        if self._is_announced_longer(scope):
            return too_long
        left_bytes = self._bytes_max
        try:
            async with asyncio.timeout(self._patience_s):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return too_long  # the client is gone, so any answer will do
                    part = message.get("body", b"")
                    left_bytes -= len(part)
                    if left_bytes < 0:
                        return too_long
                    if self._held_bytes + len(part) > self._all_bytes_max:
                        return error_answer(503, "Too many requests are being read; try again")
                    self._held_bytes += len(part)
                    parts.append(part)
                    more = message.get("more_body", False)
        except TimeoutError:
            return error_answer(408, "The request body did not come in time")
        return None

    def _is_announced_longer(self, scope: Scope) -> bool:
        return any(
            name == b"content-length" and value.isdigit() and int(value) > self._bytes_max
            for name, value in scope["headers"]
        )
