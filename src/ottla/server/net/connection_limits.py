"""ConnectionLimits: the connections of all listeners of a node, and how many there may be.

Too many connections of one address are refused. If the node as a whole is full (`max.connections`), new connections are
not refused: they wait in the kernel's queue until others are closed, as with Kafka. The node is also full when
connections have used up their share of descriptors, because the data directories need the rest.

TLS handshakes under way count as connections. When the node is full, an idle one is given up for a new connection, or a
connection whose client has not authenticated (`unproven_clients.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_address
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
from ottla.security.host import comparable_host
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.slices import Slices
from ottla.server.net.unproven_clients import UnprovenClients

if TYPE_CHECKING:
    from ottla.server.net.connection import ServerConnection
    from ottla.server.net.handshakes import Handshakes

log = logging.getLogger(__name__)


class ConnectionLimits:
    def __init__(self, settings: Config, memory: RequestMemory, ceiling: int = limits.CONNECTIONS_MAX) -> None:
        self.memory = memory
        self.unproven = UnprovenClients()
        self._ceiling = ceiling  # the number of connections for which there are descriptors
        self.max_frame_bytes = settings[SOCKET_REQUEST_MAX_BYTES]
        self.max_idle_s: float = settings[CONNECTIONS_MAX_IDLE_MS] / 1000  # negative: unlimited
        self.connections: dict[ServerConnection, None] = {}
        self.per_address: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  # connections that were closed at once, by listener
        self.handshakes: list[Handshakes] = []  # of all listeners with TLS
        self._arrival: Callable[[ServerConnection], None] | None = None  # set while somebody watches requests
        self._waiting: dict[Callable[[], None], None] = {}  # listeners that stopped accepting
        self.configure(settings)
        if ceiling < min(settings[MAX_CONNECTIONS], limits.CONNECTIONS_MAX):
            log.info("at most %d connections: this process may open few files (see ulimit -n)", ceiling)

    def configure(self, settings: Config) -> None:
        """Apply the limits that may change while the node runs."""
        self._max_connections: int = min(settings[MAX_CONNECTIONS], self._ceiling)
        self._max_per_address = settings[MAX_CONNECTIONS_PER_IP]
        self._overrides = _overrides(settings[MAX_CONNECTIONS_PER_IP_OVERRIDES])
        self.let_in()

    @property
    def full(self) -> bool:
        """Whether there are as many connections as there may be, and none can be given up for another one."""
        return not (self._has_room or any(each.has_idle for each in self.handshakes) or self.unproven.has_idle)

    @property
    def _has_room(self) -> bool:
        return len(self.connections) + sum(map(len, self.handshakes)) < self._max_connections

    def when_there_is_room(self, resume: Callable[[], None]) -> None:
        self._waiting[resume] = None

    def make_room(self) -> None:
        """Give up an idle handshake, or a client that has not authenticated, if the node is full."""
        if not self._has_room and not any(each.give_up_one() for each in self.handshakes):
            self.unproven.give_up_one()

    def refuses(self, address: str) -> str | None:
        """Return why a connection from `address` is refused, or None."""
        allowed = self._overrides.get(comparable_host(address), self._max_per_address)
        if self.per_address[address] >= allowed:
            return f"max.connections.per.ip ({allowed}) reached by {address}"
        return None

    def entered(self, connection: ServerConnection) -> None:
        self.connections[connection] = None
        self.per_address[_address(connection)] += 1
        if self._arrival is not None:
            self._arrival(connection)

    def watch_arrivals(self, watch: Callable[[ServerConnection], None] | None) -> None:
        """Call `watch` with every connection from now on that enters; None ends it."""
        self._arrival = watch

    def left(self, connection: ServerConnection) -> None:
        self.connections.pop(connection, None)
        address = _address(connection)
        self.per_address[address] -= 1
        if self.per_address[address] <= 0:
            del self.per_address[address]
        self.let_in()

    def let_in(self) -> None:
        """Let listeners accept again if there is room."""
        if self._waiting and not self.full:
            waiting, self._waiting = self._waiting, {}
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


def _address(connection: ServerConnection) -> str:
    return connection.context.connection.remote_address[0]


def _overrides(text: str) -> dict[str, int]:
    """Parse `address:count,…`; the address may itself contain colons."""
    found = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        address, _, count = entry.rpartition(":")
        host = address.strip("[] ")
        if not _is_address(host):
            log.warning("%s: %s is no address, and limits nobody", MAX_CONNECTIONS_PER_IP_OVERRIDES.name, host)
        found[comparable_host(host)] = int(count)
    return found


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
