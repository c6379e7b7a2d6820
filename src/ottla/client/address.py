"""The host and port at which a broker listens. An address is often known before, or without, a connection to it."""

from typing import NamedTuple


class Address(NamedTuple):
    """Host and port at which a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
