"""Where a broker listens: what is known of it before there is a connection, and often without one."""

from typing import NamedTuple


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
