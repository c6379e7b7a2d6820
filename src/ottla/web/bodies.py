"""Bounds on request bodies: a body that is too long is refused, and never held in memory as a whole.

The application gets the body in one piece: all our handlers need all of it.

Rules:
- The body is read before the application is called; or, if it is wanted `on_demand`, when the application asks for it,
  so that an application can refuse the head of a request without taking its body. Then a refusal of the body is raised
  in the application (`BodyRefused`).
- The total size of all bodies is bounded too. For a request without room, a body that is still being read is given up
  with 503: of the address that holds most, the oldest. If all of them are whole, the request is answered with 503.
- A body that does not come in time is not waited for (408), so that no client can occupy the room for ever.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.model import limits
from ottla.web.answers import error_answer

BODY_S = 30.0
# Bytes that the body of one request may have.
BodyLimit: TypeAlias = Callable[[Scope], int]


class BodyRefused(Exception):
    """The body was not taken; `response` is the answer to the request."""

    def __init__(self, response: Response) -> None:
        super().__init__("the request body was not taken")
        self.response = response


@dataclass(eq=False, slots=True)
class _Body:
    address: str
    bytes_max: int
    patience: asyncio.Timeout
    parts: list[bytes] = field(default_factory=list)
    held_bytes: int = 0
    is_whole: bool = False
    is_given_up: bool = False


class BodyBound:
    """Middleware that accepts bodies of up to `bytes_max`, of all requests together up to `all_bytes_max`."""

    def __init__(
        self,
        app: ASGIApp,
        bytes_max: int | BodyLimit,
        *,
        all_bytes_max: int = limits.HTTP_BODIES_BYTES_MAX,
        patience_s: float = BODY_S,
        on_demand: bool = False,
    ) -> None:
        self._app = app
        self._bytes_max: BodyLimit = (lambda _: bytes_max) if isinstance(bytes_max, int) else bytes_max
        self._all_bytes_max = all_bytes_max
        self._patience_s = patience_s
        self._on_demand = on_demand
        self._held_bytes = 0
        self._bodies: dict[_Body, None] = {}  # the oldest first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        body = _Body(client[0] if client else "", self._bytes_max(scope), asyncio.timeout(None))
        taken = False

        async def whole() -> Message:
            nonlocal taken
            if taken:
                return await receive()
            if not body.is_whole:
                await self._take(body, scope, receive)
            taken = True
            return {"type": "http.request", "body": b"".join(body.parts), "more_body": False}

        try:
            if not self._on_demand:
                await self._take(body, scope, receive)
            await self._app(scope, whole, send)
        except BodyRefused as refused:
            await refused.response(scope, receive, send)
        finally:
            self._let_go(body)

    async def _take(self, body: _Body, scope: Scope, receive: Receive) -> None:
        """Read all parts of the body. Raises BodyRefused."""
        if _announced_bytes(scope) > body.bytes_max:
            raise _too_long(body)
        self._bodies[body] = None
        body.patience = asyncio.timeout(self._patience_s)
        try:
            async with body.patience:
                await self._read(body, receive)
        except TimeoutError:
            if body.is_given_up:
                raise _no_room() from None
            raise BodyRefused(error_answer(408, "The request body did not come in time")) from None
        body.is_whole = True

    async def _read(self, body: _Body, receive: Receive) -> None:
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _too_long(body)  # the client is gone, so any answer will do
            if body.is_given_up:
                raise _no_room()
            part = message.get("body", b"")
            if body.held_bytes + len(part) > body.bytes_max:
                raise _too_long(body)
            while self._held_bytes + len(part) > self._all_bytes_max:
                given_up = self._give_up_one()
                if given_up is None or given_up is body:
                    raise _no_room()
            self._held_bytes += len(part)
            body.held_bytes += len(part)
            body.parts.append(part)
            more = message.get("more_body", False)

    def _give_up_one(self) -> _Body | None:
        """Give up the oldest body of the address that holds most; None if all bodies are whole."""
        held: Counter[str] = Counter()
        for each in self._bodies:
            if not each.is_whole:
                held[each.address] += each.held_bytes
        most = max(held, key=lambda address: held[address], default=None)
        found = next((each for each in self._bodies if each.address == most and not each.is_whole), None)
        if found is not None:
            found.is_given_up = True
            self._let_go(found)
            found.patience.reschedule(asyncio.get_running_loop().time())
        return found

    def _let_go(self, body: _Body) -> None:
        self._bodies.pop(body, None)
        self._held_bytes -= body.held_bytes
        body.held_bytes = 0
        body.parts.clear()


def _too_long(body: _Body) -> BodyRefused:
    return BodyRefused(error_answer(413, f"The request body is longer than {body.bytes_max} bytes"))


def _no_room() -> BodyRefused:
    return BodyRefused(error_answer(503, "Too many requests are being read; try again"))


def _announced_bytes(scope: Scope) -> int:
    given = (value for name, value in scope["headers"] if name == b"content-length" and value.isdigit())
    return max(map(int, given), default=0)
