"""Listener: accepts connections on one address, within the connection limits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from socket import IPPROTO_TCP, TCP_NODELAY

from ottla.model.limits import ACCEPTS_PER_WAKEUP_MAX
from ottla.server.api.context import ClientConnection, Context, Peer
from ottla.server.api.dispatcher import Dispatcher
from ottla.server.loop.runtime import Runtime
from ottla.server.net.connection import Connection
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.ports.sockets import ListeningSocket, Socket, SocketAddress
from ottla.server.settings.listeners import ListenerAddress
from ottla.server.storage.cold_reads import ColdReads

log = logging.getLogger(__name__)

# The pause after accept failed for lack of descriptors or memory; the socket stays readable, so trying at once would
# spin.
ACCEPT_PAUSE_S = 0.5


class Listener:
    def __init__(
        self,
        address: ListenerAddress,
        sock: ListeningSocket,
        runtime: Runtime,
        cold: ColdReads,
        limits: ConnectionLimits,
        dispatcher: Dispatcher,
        new_context: Callable[[Peer, ClientConnection], Context],
        *,
        controller: bool = False,
    ) -> None:
        """`controller` marks a listener of controllers, not of brokers."""
        self.name = address.name
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._sock = sock
        self._runtime = runtime
        self._loop = runtime.loop
        self._cold = cold
        self._limits = limits
        self._dispatcher = dispatcher
        self._new_context = new_context
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
        limits = self._limits
        for _ in range(ACCEPTS_PER_WAKEUP_MAX):
            if limits.full:
                self._pause()
                limits.when_there_is_room(self._resume)
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
            reason = limits.refuses(address[0])
            if reason is not None:
                log.info("refused a connection: %s", reason)
                sock.close()
                continue
            self._enter(sock, address)

    def _enter(self, sock: Socket, address: SocketAddress) -> None:
        sock.setblocking(False)
        try:
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
            local = sock.getsockname()
        except OSError:  # the client has disconnected already
            sock.close()
            return
        peer = Peer(self.name, (local[0], local[1]), (address[0], address[1]), self._controller)
        limits = self._limits
        connection = Connection(
            sock,
            self._runtime,
            self._cold,
            self._dispatcher,
            partial(self._new_context, peer),
            limits.memory,
            limits.max_frame_bytes,
            limits.left,
        )
        limits.entered(connection)

    def close(self) -> None:
        self._closed = True
        self._pause()
        self._sock.close()
