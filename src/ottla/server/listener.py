"""Listener: accepts connections on one address, within the limits per node and per client address."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Any

from ottla.model import limits
from ottla.server.connection import Connection
from ottla.server.context import Context, Peer, Services
from ottla.server.memory import RequestMemory

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One entry of `listeners`: a name and the address to bind."""

    name: str
    host: str
    port: int


@dataclass(slots=True)
class Door:
    """What all listeners of a node share: the bounds on connections and on their memory."""

    memory: RequestMemory
    max_frame_bytes: int
    max_connections: int
    max_per_address: int
    per_address_overrides: dict[str, int]
    max_idle_s: float
    connections: dict[Connection, None] = field(default_factory=dict)
    per_address: Counter[str] = field(default_factory=Counter)

    def refuses(self, address: str) -> str | None:
        """Why a connection from `address` may not enter, or None."""
        if len(self.connections) >= self.max_connections:
            return f"max.connections ({self.max_connections}) reached"
        allowed = self.per_address_overrides.get(address, self.max_per_address)
        if self.per_address[address] >= allowed:
            return f"max.connections.per.ip ({allowed}) reached by {address}"
        return None

    def tidy(self, now: float) -> None:
        for connection in tuple(self.connections):
            connection.tidy(now, self.max_idle_s)


class Listener:
    def __init__(self, endpoint: Endpoint, sock: Any, loop: Any, services: Services, door: Door) -> None:
        self.endpoint = endpoint
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._sock = sock
        self._loop = loop
        self._services = services
        self._door = door
        loop.add_reader(sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(limits.ACCEPTS_PER_WAKEUP_MAX):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.warning("accept failed: %s", error)
                return
            reason = self._door.refuses(address[0])
            if reason is not None:
                log.info("refused a connection: %s", reason)
                sock.close()
                continue
            self._enter(sock, address)

    def _enter(self, sock: Any, address: tuple[Any, ...]) -> None:
        sock.setblocking(False)
        try:
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            local = sock.getsockname()
        except OSError:  # gone before we looked
            sock.close()
            return
        peer = Peer(self.endpoint.name, (local[0], local[1]), (address[0], address[1]))
        door = self._door
        connection = Connection(
            sock, self._loop, Context(self._services, peer), door.memory, door.max_frame_bytes, self._leave
        )
        door.connections[connection] = None
        door.per_address[address[0]] += 1

    def _leave(self, connection: Connection) -> None:
        door = self._door
        door.connections.pop(connection, None)
        address = connection.context.connection.remote_address[0]
        door.per_address[address] -= 1
        if door.per_address[address] <= 0:
            del door.per_address[address]

    def close(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
