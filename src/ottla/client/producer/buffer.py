"""The producer's bound on memory: counts the bytes of buffered records, and lets callers wait for room.

Rule: callers that wait are served in order of arrival, each as soon as its record fits.
"""

import asyncio
from collections import deque


class Buffer:
    """Counts the buffered bytes; the records themselves are in the queues."""

    __slots__ = ("_closed", "_limit_bytes", "_waiting", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.used_bytes = 0
        self._limit_bytes = limit_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()  # size and future of each waiting caller
        self._closed = False

    def has_room(self, size_bytes: int) -> bool:
        return self.used_bytes + size_bytes <= self._limit_bytes

    async def wait_for_room(self, size_bytes: int) -> None:
        """Wait until a record of this size fits, or the producer is closed."""
        place = self._waiting.append
        while not self.has_room(size_bytes) and not self._closed:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            place((size_bytes, waiter))
            try:
                await waiter
            except asyncio.CancelledError:
                self.free()  # a cancelled caller, even if it had room already, leaves it to the next
                raise
            place = self._waiting.appendleft  # another caller took the room: keep the first place

    def free(self, size_bytes: int = 0) -> None:
        """Release the bytes of records that left the buffer, and wake callers that fit now."""
        self.used_bytes -= size_bytes
        room_bytes = self._limit_bytes - self.used_bytes
        while self._waiting and (self._waiting[0][0] <= room_bytes or self._waiting[0][1].done() or self._closed):
            wanted_bytes, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                room_bytes -= wanted_bytes

    def close(self) -> None:
        """Wake all callers that wait."""
        self._closed = True
        self.free()
