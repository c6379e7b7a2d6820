"""An answer of another node, to be passed on to the client (`forwarding.py`)."""

from __future__ import annotations


class Forwarded:
    """An answer as the controller encoded it, header included."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def frame(self) -> bytes:
        return len(self.data).to_bytes(4, "big") + self.data
