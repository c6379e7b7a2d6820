"""RequestMemory: one budget for all requests of a node that are being read or carried out, or wait
(`queued.max.request.bytes`).

A connection owns a small buffer for free and reserves what it grows beyond that. When the budget is spent the
connection stops reading and queues here. Memory that comes back is handed to whoever waits longest, and while anybody
waits nobody else gets any, so a large request is not starved by small ones. Connections that are between two frames
give their buffers back when others wait, and polls of many partitions end (`server/waiters.py`); a request that keeps
its turn (`server/turns.py`) needs none of this memory to come to its end. A connection that holds memory in the middle
of a frame and never finishes it is closed by housekeeping (`limits.STALLED_FRAME_S`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ottla.model import limits
from ottla.model.config import Config


class Holder(Protocol):
    """Who holds reserved memory, for a frame or for nothing."""

    def shrink(self) -> None:
        """Releases everything if it is for nothing."""


class RequestMemory:
    __slots__ = ("holders", "limit_bytes", "used_bytes", "waiting")

    @classmethod
    def of(cls, settings: Config) -> RequestMemory:
        queued_bytes = settings.get("queued.max.request.bytes")
        return cls(queued_bytes if queued_bytes > 0 else limits.QUEUED_REQUEST_BYTES_MAX)

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.holders: dict[Holder, None] = {}
        # Who waits, in order: to be called with how much they asked for and now have.
        self.waiting: dict[Callable[[int], None], int] = {}

    def reserve(self, size_bytes: int) -> bool:
        """Takes `size_bytes` if the budget allows; a lone reservation larger than the budget is let through."""
        if self.waiting or not self._has(size_bytes):
            return False
        self.used_bytes += size_bytes
        return True

    def _has(self, size_bytes: int) -> bool:
        return not self.used_bytes or self.used_bytes + size_bytes <= self.limit_bytes

    def release(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "released more than was reserved"
        self._hand_out()

    def wait(self, size_bytes: int, granted: Callable[[int], None]) -> None:
        """Calls `granted` once, when `size_bytes` are reserved for it; that may be before this returns."""
        self.waiting[granted] = size_bytes
        for holder in tuple(self.holders):
            holder.shrink()

    def forget(self, granted: Callable[[int], None]) -> None:
        """It waits no more."""
        if self.waiting.pop(granted, None) is not None:
            self._hand_out()

    def _hand_out(self) -> None:
        while self.waiting:
            granted = next(iter(self.waiting))
            size_bytes = self.waiting[granted]
            if not self._has(size_bytes):
                return
            del self.waiting[granted]
            self.used_bytes += size_bytes
            granted(size_bytes)
