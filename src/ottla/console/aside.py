"""A second event loop, for what reads a whole cluster: answers about tens of thousands of partitions take long to
decode and to count, and the loop that serves pages goes on meanwhile.

Rules:
- There is one such loop for all users, in a thread of its own, begun when it is first needed.
- Each user has a client of its own there, with the same rights as the other one. What is done with it returns values
  that nobody changes any more.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.errors import NotConnected
from ottla.client.options import ClientOptions

T = TypeVar("T")

_BEGINNING = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


class AsideClient:
    """The client of one user beside the loop that serves pages."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._admin: Admin | None = None
        self._is_used = False
        self._is_closed = False

    async def run(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        """Do some work there, and wait for its result; who is cancelled cancels it. Raises NotConnected once closed."""
        self._is_used = True
        return await _beside(self._do(work))

    async def close(self) -> None:
        if self._is_used:
            await _beside(self._close())
        self._is_closed = True

    async def _do(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        if self._is_closed:
            raise NotConnected("the session is over")
        if self._admin is None:
            self._admin = Admin(self._options)
        return await work(self._admin)

    async def _close(self) -> None:
        self._is_closed = True
        if self._admin is not None:
            await self._admin.close()


async def _beside(work: Coroutine[None, None, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


def _loop() -> asyncio.AbstractEventLoop:
    with _BEGINNING:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="console-aside", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
