"""RequestMemory: one budget for the receive buffers of all connections (`queued.max.request.bytes`).

A connection owns a small buffer for free and reserves what it grows beyond that. When the budget is spent the
connection stops reading and queues here; whoever gives memory back wakes the next one. A client that opens large
frames and never finishes them is found by `stalled` and closed by housekeeping, so it cannot starve the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class RequestMemory:
    __slots__ = ("_waiting", "limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def reserve(self, size_bytes: int) -> bool:
        """Takes `size_bytes` if the budget allows; a lone reservation larger than the budget is let through."""
        if self.used_bytes and self.used_bytes + size_bytes > self.limit_bytes:
            return False
        self.used_bytes += size_bytes
        return True

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "released more than was reserved"
        while self._waiting and (not self.used_bytes or self.used_bytes + self._waiting[0][0] <= self.limit_bytes):
            _, retry = self._waiting.popleft()
            retry()

    def wait(self, size_bytes: int, retry: Callable[[], None]) -> None:
        """Calls `retry` once when `size_bytes` may be free; it must reserve again."""
        self._waiting.append((size_bytes, retry))

    @property
    def contended(self) -> bool:
        return bool(self._waiting)
