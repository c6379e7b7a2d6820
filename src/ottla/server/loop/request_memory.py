"""RequestMemory: one memory budget of a node for all requests that are being read, carried out or waiting
(`queued.max.request.bytes`).

A connection owns a small buffer for free and reserves every byte beyond it, as the bytes of a frame arrive. When the
budget is spent, the connection stops reading and queues here. Released memory goes to the connection that has waited
longest, and new reservations are refused while any connection waits, so small requests do not starve a large one. While
connections wait, connections that are between two frames give their buffers back, and fetches that wait for many
partitions end (`server/loop/waiters.py`). A request that keeps its turn (`server/api/turns.py`) needs no more of this
memory to complete. A connection whose frame arrives too slowly while others wait is closed by housekeeping
(`InboundBuffer.holds_up`).

Connections that each hold the beginning of a frame could wait for each other for ever. Therefore the connection that
has waited longest is favoured: it may exceed the budget until it releases all memory that it holds, and then the next
one is favoured. So the node holds at most the budget plus one frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.network import QUEUED_MAX_REQUEST_BYTES


class Holder(Protocol):
    """An owner of reserved memory, which may hold it for a frame or without need."""

    def shrink(self) -> None:
        """Release all memory if it is held without need."""


class _Wish(NamedTuple):
    size_bytes: int
    holder: Holder
    granted: Callable[[int], None]


class RequestMemory:
    __slots__ = ("_favoured", "_on_spent", "holders", "limit_bytes", "used_bytes", "waiting")

    @classmethod
    def of(cls, settings: Config) -> RequestMemory:
        queued_bytes = settings[QUEUED_MAX_REQUEST_BYTES]
        return cls(queued_bytes if queued_bytes > 0 else limits.QUEUED_REQUEST_BYTES_MAX)

    def __init__(self, limit_bytes: int, on_spent: Callable[[Holder], None] | None = None) -> None:
        """`on_spent` is called with a holder that has to wait, and may make other holders release their memory."""
        self._on_spent = on_spent
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.holders: dict[Holder, None] = {}
        self.waiting: dict[Holder, _Wish] = {}  # in the order of arrival
        self._favoured: Holder | None = None

    def reserve(self, size_bytes: int, holder: Holder) -> bool:
        """Take `size_bytes` if the budget allows it; a reservation larger than the budget succeeds if it is the only
        one.
        """
        if holder is not self._favoured and (self.waiting or not self._has(size_bytes)):
            return False
        self.used_bytes += size_bytes
        return True

    def _has(self, size_bytes: int) -> bool:
        return not self.used_bytes or self.used_bytes + size_bytes <= self.limit_bytes

    def release(self, size_bytes: int, holder: Holder) -> None:
        """Take back all memory that `holder` has reserved."""
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "released more than was reserved"
        if holder is self._favoured:
            self._favoured = None
        self._hand_out()

    def wait(self, size_bytes: int, holder: Holder, granted: Callable[[int], None]) -> None:
        """Call `granted` once, when `size_bytes` are reserved for `holder`; this may happen before `wait` returns."""
        is_first = not self.waiting
        self.waiting[holder] = _Wish(size_bytes, holder, granted)
        if is_first:  # if other holders wait already, all holders were asked to shrink before
            for each in tuple(self.holders):
                each.shrink()
        if self._on_spent is not None and not self._has(size_bytes):
            self._on_spent(holder)
        self._hand_out()

    def take_over(self, size_bytes: int, holder: Holder) -> None:
        """Count memory that `holder` has already, from another budget."""
        if size_bytes:
            self.used_bytes += size_bytes
            self.holders[holder] = None

    def forget(self, holder: Holder) -> None:
        """Remove `holder` from the queue."""
        if self.waiting.pop(holder, None) is not None:
            self._hand_out()

    def _hand_out(self) -> None:
        while self.waiting:
            size_bytes, holder, granted = next(iter(self.waiting.values()))
            if not self._has(size_bytes):
                if self._favoured is not None:
                    return
                self._favoured = holder
            del self.waiting[holder]
            self.used_bytes += size_bytes
            granted(size_bytes)
