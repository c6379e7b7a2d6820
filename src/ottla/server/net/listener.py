"""Listener: accepts connections on one address, as far as the door lets them in."""

from __future__ import annotations

import logging
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Any

from ottla.model import limits
from ottla.server.api.context import Context, Peer, Services
from ottla.server.net.connection import Connection
from ottla.server.net.connection_limits import Door
from ottla.server.settings.listeners import ListenerAddress

log = logging.getLogger(__name__)

# After accept failed for want of descriptors or memory; the socket stays readable, so trying at once would spin.
ACCEPT_PAUSE_S = 0.5


class Listener:
    def __init__(
        self,
        address: ListenerAddress,
        sock: Any,
        loop: Any,
        services: Services,
        door: Door,
        *,
        controller: bool = False,
    ) -> None:
        self.name = address.name
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._sock = sock
        self._loop = loop
        self._services = services
        self._door = door
        self._controller = controller
        self._accepting = False
        self._closed = False
        self._resume()

    def _resume(self) -> None:
        if not (self._accepting or self._closed):
            self._accepting = True
            self._loop.add_reader(self._sock.fileno(), self._accept)

    def _pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._sock.fileno())

    def _accept(self) -> None:
        door = self._door
        for _ in range(limits.ACCEPTS_PER_WAKEUP_MAX):
            if door.full:
                self._pause()
                door.when_there_is_room(self._resume)
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                log.warning("accept failed: %s", error)
                self._pause()
                self._loop.call_later(ACCEPT_PAUSE_S, self._resume)
                return
            reason = door.refuses(address[0])
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
        peer = Peer(self.name, (local[0], local[1]), (address[0], address[1]), self._controller)
        door = self._door
        context = Context(self._services, peer)
        door.entered(Connection(sock, self._loop, context, door.memory, door.max_frame_bytes, door.left))

    def close(self) -> None:
        self._closed = True
        self._pause()
        self._sock.close()
