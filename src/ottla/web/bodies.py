"""Bounds on what a request may carry: a body that is longer is refused, and never held as a whole.

The body is read before the application is called, which gets it in one piece: every handler of ours wants all of it.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.web.answers import error_answer


class BodyBound:
    """Lets requests of up to `bytes_max` through; answers 413 to the others."""

    def __init__(self, app: ASGIApp, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = None if self._is_announced_longer(scope) else await self._read(receive)
        if body is None:
            await error_answer(413, f"The request body is longer than {self._bytes_max} bytes")(scope, receive, send)
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    def _is_announced_longer(self, scope: Scope) -> bool:
        return any(
            name == b"content-length" and value.isdigit() and int(value) > self._bytes_max
            for name, value in scope["headers"]
        )

    async def _read(self, receive: Receive) -> bytes | None:
        """The whole body; None when it is too long, or its sender went away."""
        parts: list[bytes] = []
        left_bytes = self._bytes_max
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            left_bytes -= len(part)
            if left_bytes < 0:
                return None
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)
