"""Listener: accepts connections on one address, within the connection limits, and secures them as it is set up.

Over TLS a connection begins when its handshake has succeeded (`handshakes.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from socket import IPPROTO_TCP, TCP_NODELAY, socket
from typing import TYPE_CHECKING

from ottla.model.limits import ACCEPTS_PER_WAKEUP_MAX, TLS_HANDSHAKES_LOOK_S
from ottla.security.name_rules import NoMatchingRule
from ottla.security.principal import ANONYMOUS, Principal
from ottla.server.api.context import ClientConnection, Context, Peer
from ottla.server.api.dispatcher import Dispatcher
from ottla.server.api.security.tenant_connections import refusal_of
from ottla.server.loop.runtime import Runtime
from ottla.server.net.accept_pacing import AcceptPacing
from ottla.server.net.connection import ServerConnection
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.net.handshakes import Handshakes
from ottla.server.net.tls_socket import TlsSocket
from ottla.server.ports.sockets import ListeningSocket, Socket, SocketAddress
from ottla.server.quotas.connection_rates import ConnectionRates
from ottla.server.security.listener_security import ListenerSecurity
from ottla.server.security.logins import TLS, Logins
from ottla.server.settings.listeners import ListenerAddress
from ottla.server.storage.cold_reads import ColdReads

if TYPE_CHECKING:
    from ottla.server.security.listener_tls import ListenerTls

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
        security: ListenerSecurity,
        dispatcher: Dispatcher,
        new_context: Callable[[Peer, ClientConnection], Context],
        logins: Logins,
        *,
        rates: ConnectionRates | None = None,
        controller: bool = False,
    ) -> None:
        """`rates` bound how many connections are accepted per second; `controller` marks a listener of controllers, not
        of brokers.
        """
        self.name = address.name
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._sock = sock
        self._runtime = runtime
        self._loop = runtime.loop
        self._cold = cold
        self._limits = limits
        self._security = security
        self._logins = logins
        self._handshakes = Handshakes(runtime, self._refused, limits.let_in, self.name)
        limits.handshakes.append(self._handshakes)
        self._dispatcher = dispatcher
        self._new_context = new_context
        self._controller = controller
        self._pacing = None if rates is None else AcceptPacing(self.name, rates, runtime.loop)
        self._accepting = False
        self._next_look: asyncio.TimerHandle | None = None  # while there is no room
        self._closed = False
        self.resume()

    def resume(self) -> None:
        if not (self._accepting or self._closed or (self._pacing is not None and self._pacing.holds_one)):
            self._accepting = True
            self._loop.add_reader(self._sock.fileno(), self._accept)

    def pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._sock.fileno())

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_WAKEUP_MAX):
            full = next((gate for gate in self._gates() if gate.full), None)
            if full is not None:
                self.pause()
                full.when_there_is_room(self.resume)
                self._look_again(TLS_HANDSHAKES_LOOK_S if full is self._handshakes else ACCEPT_PAUSE_S)
                return
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                log.warning("accept failed: %s", error)
                self.pause()
                self._loop.call_later(ACCEPT_PAUSE_S, self.resume)
                return
            if self._pacing is None or not self._pacing.active:
                self.enter(sock, address)
            elif not self._pacing.admit(sock, address, self):
                return

    def _look_again(self, after_s: float) -> None:
        """Look for room again in a while, since nothing signals that a handshake has become idle."""
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = self._loop.call_later(after_s, self.resume)

    def _gates(self) -> Sequence[ConnectionLimits | Handshakes]:
        return (self._limits, self._handshakes) if self._security.tls is not None else (self._limits,)

    def enter(self, sock: Socket, address: SocketAddress) -> None:
        """Let an accepted socket in, after its handshake if there is one."""
        tls = self._security.tls
        reason = self._limits.refuses(address[0]) or (None if tls is None else self._handshakes.refuses(address[0]))
        if reason is not None:
            self._refuse(sock, reason)
            return
        self._limits.make_room()
        sock.setblocking(False)
        try:
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        except OSError:  # the client has disconnected already
            sock.close()
            return
        if tls is None:
            self._connect(sock, address, ANONYMOUS)
            return
        assert isinstance(sock, socket), "TLS needs a socket of the operating system"
        self._handshakes.begin(sock, address[0], tls.context, lambda secured: self._secured(secured, address, tls))

    def _secured(self, sock: TlsSocket, address: SocketAddress, tls: ListenerTls) -> None:
        """Let in a client whose handshake has succeeded."""
        reason = "the listener was closed" if self._closed else self._limits.refuses(address[0])
        if reason is None:
            try:
                # With SASL the client says later who it is, and rules for names in certificates mean nothing.
                principal = tls.principal_in(sock.certificate) if self._security.sasl is None else ANONYMOUS
            except (ValueError, NoMatchingRule) as error:
                reason = f"the certificate names no principal: {error}"
                self._refused(address[0], reason)
            else:
                self._connect(sock, address, principal)
                return
        self._refuse(sock, reason)

    def _refuse(self, sock: Socket | TlsSocket, reason: str) -> None:
        log.info("refused a connection: %s", reason)
        self._limits.refused[self.name] += 1
        sock.close()

    def _connect(self, sock: Socket, address: SocketAddress, principal: Principal) -> None:
        try:
            local = sock.getsockname()
        except OSError:  # the client has disconnected already
            sock.close()
            return
        protocol = self._security.protocol
        remote = (address[0], address[1])
        peer = Peer(self.name, (local[0], local[1]), remote, self._controller, protocol, principal)
        limits = self._limits
        connection = self._new_connection()(
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
        if principal is not ANONYMOUS and self._security.sasl is None:  # with SASL the client authenticates later
            self._identified(connection, principal, remote[0])

    def _identified(self, connection: ServerConnection, principal: Principal, address: str) -> None:
        """Note a client whose certificate names it, and refuse it if its tenant has too many connections."""
        refusal = refusal_of(connection.context)
        if refusal is not None:
            log.info("refused a connection: %s", refusal)
            self._limits.refused[self.name] += 1
            self._logins.failed(self.name, TLS, address, principal.name, refusal)
            connection.close()
        else:
            self._logins.succeeded(self.name, TLS, address, str(principal))

    def _refused(self, address: str, reason: str) -> None:
        self._logins.failed(self.name, TLS, address, "", reason)

    def _new_connection(self) -> Callable[..., ServerConnection]:
        """Return what makes the connections of this listener."""
        sasl = self._security.sasl
        if sasl is None:
            return ServerConnection
        from ottla.server.net.sasl_connection import SaslConnection  # few nodes need it

        return partial(SaslConnection, authentication=sasl.new_authentication(), unproven=self._limits.unproven)

    def close(self) -> None:
        self._closed = True
        self._handshakes.close()
        self._limits.handshakes.remove(self._handshakes)
        if self._next_look is not None:
            self._next_look.cancel()
        self.pause()
        self._sock.close()
        if self._pacing is not None:
            self._pacing.close()
