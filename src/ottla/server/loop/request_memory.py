"""RequestMemory: one budget for all requests of a node that are being read or carried out, or wait
(`queued.max.request.bytes`).

A connection owns a small buffer for free and reserves what it grows beyond that, as the bytes of a frame come. When the
budget is spent the connection stops reading and queues here. Memory that comes back is handed to whoever waits longest,
and while anybody waits nobody else gets any, so a large request is not starved by small ones. Connections that are
between two frames give their buffers back when others wait, and polls of many partitions end
(`server/loop/waiters.py`); a request that keeps its turn (`server/api/turns.py`) needs none of this memory to come to
its end. A connection whose frame comes too slowly while others wait is closed by housekeeping
(`InboundBuffer.holds_up`).

Connections that all hold the beginning of a frame could wait for each other for ever. Therefore one of them, whoever
waits longest, is favoured: it gets what it needs beyond the budget until it gives back all that it holds, and then the
next one is. So the node holds the budget and one frame at the most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.network import QUEUED_MAX_REQUEST_BYTES


class Holder(Protocol):
    """Who holds reserved memory, for a frame or for nothing."""

    def shrink(self) -> None:
        """Releases everything if it is for nothing."""


class _Wish(NamedTuple):
    size_bytes: int
    holder: Holder
    granted: Callable[[int], None]


class RequestMemory:
    __slots__ = ("_favoured", "holders", "limit_bytes", "used_bytes", "waiting")

    @classmethod
    def of(cls, settings: Config) -> RequestMemory:
        queued_bytes = settings[QUEUED_MAX_REQUEST_BYTES]
        return cls(queued_bytes if queued_bytes > 0 else limits.QUEUED_REQUEST_BYTES_MAX)

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.holders: dict[Holder, None] = {}
        self.waiting: dict[Holder, _Wish] = {}  # in order
        self._favoured: Holder | None = None

    def reserve(self, size_bytes: int, holder: Holder) -> bool:
        """Takes `size_bytes` if the budget allows; a lone reservation larger than the budget is let through."""
        if holder is not self._favoured and (self.waiting or not self._has(size_bytes)):
            return False
        self.used_bytes += size_bytes
        return True

    def _has(self, size_bytes: int) -> bool:
        return not self.used_bytes or self.used_bytes + size_bytes <= self.limit_bytes

    def release(self, size_bytes: int, holder: Holder) -> None:
        """Takes back all that `holder` has."""
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "released more than was reserved"
        if holder is self._favoured:
            self._favoured = None
        self._hand_out()

    def wait(self, size_bytes: int, holder: Holder, granted: Callable[[int], None]) -> None:
        """Calls `granted` once, when `size_bytes` are reserved for `holder`; that may be before this returns."""
        is_first = not self.waiting
        self.waiting[holder] = _Wish(size_bytes, holder, granted)
        if is_first:  # all were asked for the others who wait
            for each in tuple(self.holders):
                each.shrink()
        self._hand_out()

    def forget(self, holder: Holder) -> None:
        """It waits no more."""
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
