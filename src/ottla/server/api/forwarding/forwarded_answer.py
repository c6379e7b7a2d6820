"""An answer of another node, to be passed on to the client (`forwarding.py`)."""

from __future__ import annotations


class Forwarded:
    """An answer as the controller encoded it, header included; `throttle_at` is the position of `throttle_time_ms`, if
    that is its first field.
    """

    __slots__ = ("_throttle_at", "data")

    def __init__(self, data: bytes, throttle_at: int | None = None) -> None:
        self.data = data
        self._throttle_at = throttle_at

    def throttle(self, throttle_ms: int) -> int:
        """Tell the client to wait for at least this long; return how long it is told to wait."""
        at = self._throttle_at
        if at is None or len(self.data) < at + 4:
            return throttle_ms
        told_ms = int.from_bytes(self.data[at : at + 4], "big", signed=True)
        if told_ms < throttle_ms:
            self.data = self.data[:at] + throttle_ms.to_bytes(4, "big") + self.data[at + 4 :]
        return max(told_ms, throttle_ms)

    def frame(self) -> bytes:
        return len(self.data).to_bytes(4, "big") + self.data
