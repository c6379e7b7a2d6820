"""Bounds on what a request may carry: a longer body is refused before it is in memory."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.web.answers import error_answer


class _TooLong(Exception):
    """More came than was announced or is allowed."""


class BodyBound:
    """Lets requests of up to `bytes_max` through; answers 413 to the others."""

    def __init__(self, app: ASGIApp, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = error_answer(413, f"The request body is longer than {self._bytes_max} bytes")
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self._bytes_max:
                await refusal(scope, receive, send)
                return
        seen_bytes, answered = 0, False

        async def bounded() -> Message:
            nonlocal seen_bytes
            message = await receive()
            seen_bytes += len(message.get("body", b""))
            if seen_bytes > self._bytes_max:
                raise _TooLong
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, bounded, noted)
        except _TooLong:
            if not answered:
                await refusal(scope, receive, send)
