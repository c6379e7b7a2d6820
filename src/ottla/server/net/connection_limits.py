"""ConnectionLimits: the connections of all listeners of a node, and how many there may be.

Too many connections of one address are refused. If the node as a whole is full (`max.connections`), new connections are
not refused: they wait in the kernel's queue until others are closed, as with Kafka. The node is also full when
connections have used up their share of descriptors, because the data directories need the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.network import (
    CONNECTIONS_MAX_IDLE_MS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    SOCKET_REQUEST_MAX_BYTES,
)
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.slices import Slices

if TYPE_CHECKING:
    from ottla.server.net.connection import Connection

log = logging.getLogger(__name__)


class ConnectionLimits:
    def __init__(self, settings: Config, memory: RequestMemory, ceiling: int = limits.CONNECTIONS_MAX) -> None:
        self.memory = memory
        self._ceiling = ceiling  # the number of connections for which there are descriptors
        self.max_frame_bytes = settings[SOCKET_REQUEST_MAX_BYTES]
        self.max_idle_s: float = settings[CONNECTIONS_MAX_IDLE_MS] / 1000  # negative: unlimited
        self.connections: dict[Connection, None] = {}
        self.per_address: Counter[str] = Counter()
        self._waiting: list[Callable[[], None]] = []  # listeners that stopped accepting
        self.configure(settings)
        if ceiling < min(settings[MAX_CONNECTIONS], limits.CONNECTIONS_MAX):
            log.info("at most %d connections: this process may open few files (see ulimit -n)", ceiling)

    def configure(self, settings: Config) -> None:
        """Apply the limits that may change while the node runs."""
        self._max_connections: int = min(settings[MAX_CONNECTIONS], self._ceiling)
        self._max_per_address = settings[MAX_CONNECTIONS_PER_IP]
        self._overrides = _overrides(settings[MAX_CONNECTIONS_PER_IP_OVERRIDES])
        self._let_in()

    @property
    def full(self) -> bool:
        return len(self.connections) >= self._max_connections

    def when_there_is_room(self, resume: Callable[[], None]) -> None:
        self._waiting.append(resume)

    def refuses(self, address: str) -> str | None:
        """Return why a connection from `address` is refused, or None."""
        allowed = self._overrides.get(address, self._max_per_address)
        if self.per_address[address] >= allowed:
            return f"max.connections.per.ip ({allowed}) reached by {address}"
        return None

    def entered(self, connection: Connection) -> None:
        self.connections[connection] = None
        self.per_address[_address(connection)] += 1

    def left(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        address = _address(connection)
        self.per_address[address] -= 1
        if self.per_address[address] <= 0:
            del self.per_address[address]
        self._let_in()

    def _let_in(self) -> None:
        if self._waiting and not self.full:
            waiting, self._waiting = self._waiting, []
            for resume in waiting:
                resume()

    async def tidy(self, loop: asyncio.AbstractEventLoop, slices: Slices) -> None:
        """Do the housekeeping of every connection, some per turn of the loop, because it may handle requests."""
        for number, connection in enumerate(tuple(self.connections), start=1):
            if not connection.closed:
                connection.tidy(loop.time(), self.max_idle_s)
            if number % limits.CONNECTIONS_TIDIED_PER_SLICE == 0:
                await slices.turn()

    def close(self) -> None:
        """Close all connections."""
        for connection in tuple(self.connections):
            connection.close()


def _address(connection: Connection) -> str:
    return connection.context.connection.remote_address[0]


def _overrides(text: str) -> dict[str, int]:
    """Parse `address:count,…`; the address may itself contain colons."""
    found = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, _, count = entry.rpartition(":")
        found[address.strip("[]")] = int(count)
    return found
