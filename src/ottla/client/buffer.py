"""The producer's bound on memory: how many bytes of records wait, and who waits for room.

Rules: whoever waits longest is let in first, as soon as its record fits; nobody waits longer than `max_block_ms`.
"""

import asyncio
from collections import deque

from ottla.client.errors import BufferFull


class Buffer:
    """Counts bytes; the records themselves lie in the queues."""

    __slots__ = ("_closed", "_limit_bytes", "_max_block_ms", "_waiting", "used_bytes")

    def __init__(self, limit_bytes: int, max_block_ms: int) -> None:
        self.used_bytes = 0
        self._limit_bytes = limit_bytes
        self._max_block_ms = max_block_ms
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()  # who waits, for how much
        self._closed = False

    async def wait_for_room(self, size_bytes: int) -> None:
        """Until a record of this size fits, or the producer is closed; `BufferFull` after `max_block_ms`."""
        try:
            async with asyncio.timeout(self._max_block_ms / 1000):
                while self.used_bytes + size_bytes > self._limit_bytes and not self._closed:
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append((size_bytes, waiter))
                    await waiter
        except TimeoutError:
            raise BufferFull(f"no room in the buffer within {self._max_block_ms} ms") from None

    def free(self, size_bytes: int) -> None:
        """Records left the buffer."""
        self.used_bytes -= size_bytes
        room_bytes = self._limit_bytes - self.used_bytes
        while self._waiting and (self._waiting[0][0] <= room_bytes or self._closed):
            wanted_bytes, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room_bytes -= wanted_bytes

    def close(self) -> None:
        """Let everybody go."""
        self._closed = True
        self.free(0)
