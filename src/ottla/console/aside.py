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
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.options import ClientOptions

T = TypeVar("T")

_BEGINNING = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


class AsideClient:
    """The client of one user beside the loop that serves pages."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._admin: Admin | None = None

    async def run(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        """Do some work there, and wait for its result. Who is cancelled cancels the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._do(work), _loop()))

    async def close(self) -> None:
        if self._admin is not None:
            await self.run(lambda admin: admin.close())
            self._admin = None

    async def _do(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        if self._admin is None:
            self._admin = Admin(self._options)
        return await work(self._admin)


def _loop() -> asyncio.AbstractEventLoop:
    with _BEGINNING:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="console-aside", daemon=True).start()
            _loops.append(loop)
        return _loops[0]
