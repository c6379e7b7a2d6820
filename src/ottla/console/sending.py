"""Sending answers to clients that may be slow, or not read at all.

Rules:
- An answer is sent in parts of a bounded size. Each part waits until the one before has left the process, so that of an
  answer no more than a part is unsent.
- The client has a limited time for each part, and for the whole answer. Then its connection is ended.
- A stream ends at once when its client leaves or its session ends: its generator is closed, wherever it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ottla.model import limits
from ottla.web.web_connection import connection_of

log = logging.getLogger(__name__)


class WholeAnswer(Response):
    """An answer that was made before it is sent."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = _Sending(scope, send)
        try:
            await sending.begin(self)
            await sending.put(bytes(self.body))
            await sending.end()
        except TimeoutError:
            await connection_of(scope).abort()


class StreamedAnswer(StreamingResponse):
    """Sends what a generator makes, until the session has `ended`."""

    def __init__(
        self, parts: AsyncGenerator[bytes, None], ended: asyncio.Event | None, headers: dict[str, str], media_type: str
    ) -> None:
        super().__init__(parts, 200, headers, media_type)
        self._parts = parts
        self._ended = ended or asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._sent(_Sending(scope, send)))
        others = [asyncio.ensure_future(_left(receive)), asyncio.ensure_future(self._ended.wait())]
        try:
            await asyncio.wait([sending, *others], return_when=asyncio.FIRST_COMPLETED)
            is_whole = sending.done() and sending.exception() is None
        finally:
            for each in (sending, *others):
                each.cancel()
            await asyncio.gather(sending, *others, return_exceptions=True)
            await self._parts.aclose()
        if not is_whole:
            _tell(sending)
            await connection_of(scope).abort()

    async def _sent(self, sending: _Sending) -> None:
        await sending.begin(self)
        async for part in self._parts:
            await sending.put(part)
        await sending.end()


class _Sending:
    """Sends one answer in time. Raises TimeoutError."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._send = send
        self._end_s = asyncio.get_running_loop().time() + limits.CONSOLE_ANSWER_S
        connection_of(scope).send_at_once()

    async def begin(self, response: Response) -> None:
        await self._put(
            {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        )

    async def put(self, part: bytes) -> None:
        """Send a part; it returns when all but the last piece of it has left the process."""
        size = limits.CONSOLE_PART_BYTES
        for at in range(0, len(part), size):
            await self._put({"type": "http.response.body", "body": part[at : at + size], "more_body": True})
            await asyncio.sleep(0)  # the loop may have to tell that the client has left, and has others to serve

    async def end(self) -> None:
        """Wait until everything has left the process, and end the answer."""
        await self._put({"type": "http.response.body", "body": b"", "more_body": False})

    async def _put(self, message: Message) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._end_s:
            raise TimeoutError
        async with asyncio.timeout_at(min(self._end_s, now_s + limits.CONSOLE_SEND_S)):
            await self._send(message)


def _tell(sending: asyncio.Future[None]) -> None:
    """Log why an answer was cut, unless its client or session was the reason."""
    error = None if sending.cancelled() else sending.exception()
    if error is not None and not isinstance(error, TimeoutError):
        log.warning("an answer was cut: %s: %r", type(error).__name__, str(error)[: limits.CONSOLE_CELL_CHARS])


async def _left(receive: Receive) -> None:
    """Return when the client has left."""
    with contextlib.suppress(Exception):  # of a body that nobody asked for
        while (await receive())["type"] != "http.disconnect":
            pass
