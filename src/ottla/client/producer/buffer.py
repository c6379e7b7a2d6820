"""The producer's bound on memory: how many bytes of records wait, and who waits for room.

Rule: of those who wait, the one that came first is let in first, as soon as its record fits.
"""

import asyncio
from collections import deque


class Buffer:
    """Counts bytes; the records themselves lie in the queues."""

    __slots__ = ("_closed", "_limit_bytes", "_waiting", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.used_bytes = 0
        self._limit_bytes = limit_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()  # who waits, for how much
        self._closed = False

    def has_room(self, size_bytes: int) -> bool:
        return self.used_bytes + size_bytes <= self._limit_bytes

    async def wait_for_room(self, size_bytes: int) -> None:
        """Until a record of this size fits, or the producer is closed."""
        place = self._waiting.append
        while not self.has_room(size_bytes) and not self._closed:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            place((size_bytes, waiter))
            try:
                await waiter
            except asyncio.CancelledError:
                self.free()  # whoever gives up, even if it was let in already, leaves the room to the next
                raise
            place = self._waiting.appendleft  # somebody was quicker: it keeps its place

    def free(self, size_bytes: int = 0) -> None:
        """Records left the buffer, or somebody who waited for room."""
        self.used_bytes -= size_bytes
        room_bytes = self._limit_bytes - self.used_bytes
        while self._waiting and (self._waiting[0][0] <= room_bytes or self._waiting[0][1].done() or self._closed):
            wanted_bytes, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room_bytes -= wanted_bytes

    def close(self) -> None:
        """Let everybody go."""
        self._closed = True
        self.free()
