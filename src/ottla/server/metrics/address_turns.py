"""AddressTurns: one at a time of those who wait, and their addresses take turns.

So a flood from one address delays each client of another address by two checks at most. All addresses of a /64
network of IPv6 count as one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.security.address_holder import holder_of


class AddressTurns:
    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # the first is served next
        self._is_taken = False

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        await self._wait(holder_of(address))
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, holder: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(holder, deque()).append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # it has just been granted
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Grant the next turn; who has left in the meantime is passed over."""
        while self._queues:
            holder, queue = next(iter(self._queues.items()))
            granted = queue.popleft()
            if queue:
                self._queues.move_to_end(holder)
            else:
                del self._queues[holder]
            if not granted.done():
                granted.set_result(None)
                return
        self._is_taken = False
