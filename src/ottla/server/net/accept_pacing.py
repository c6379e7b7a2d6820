"""AcceptPacing: lets the accepted connections of one listener in, at the rates that are allowed.

A connection above the rate of its node or listener is let in after its wait, and its listener accepts no other one
meanwhile. A connection of an address above its quota is not read at all, and is closed after its wait.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ottla.model import limits
from ottla.server.ports.sockets import Socket, SocketAddress
from ottla.server.quotas.connection_rates import ConnectionRates


class PausedListener(Protocol):
    def pause(self) -> None:
        """Accept nothing for now."""

    def resume(self) -> None: ...

    def enter(self, sock: Socket, address: SocketAddress) -> None:
        """Let an accepted connection in."""


class AcceptPacing:
    def __init__(self, name: str, rates: ConnectionRates, loop: asyncio.AbstractEventLoop) -> None:
        self._name = name
        self._rates = rates
        self._loop = loop
        self._waiting: Socket | None = None  # the connection that waits for the listener's rate
        self._refused: dict[Socket, asyncio.TimerHandle] = {}  # connections that are closed after their wait

    @property
    def active(self) -> bool:
        return self._rates.active

    @property
    def holds_one(self) -> bool:
        """Whether an accepted connection waits: the listener accepts no other one, whoever wants it to go on."""
        return self._waiting is not None

    def admit(self, sock: Socket, address: SocketAddress, listener: PausedListener) -> bool:
        """Let a connection in, now or later; return whether the listener may accept the next one now."""
        wait_ms = self._rates.accepted(self._name)
        if not wait_ms:
            self._enter(sock, address, listener)
            return True

        def go_on() -> None:
            if self._waiting is sock:
                self._waiting = None
                try:
                    self._enter(sock, address, listener)
                finally:
                    listener.resume()

        listener.pause()
        self._waiting = sock
        self._loop.call_later(wait_ms / 1000, go_on)
        return False

    def _enter(self, sock: Socket, address: SocketAddress, listener: PausedListener) -> None:
        wait_ms = self._rates.refused(self._name, address[0])
        if not wait_ms:
            listener.enter(sock, address)
        elif len(self._refused) < limits.REFUSED_CONNECTIONS_HELD_MAX:
            self._refused[sock] = self._loop.call_later(wait_ms / 1000, self._close_refused, sock)
        else:
            sock.close()

    def _close_refused(self, sock: Socket) -> None:
        del self._refused[sock]
        sock.close()

    def close(self) -> None:
        """Close all connections that were not let in yet."""
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None
        for sock, timer in self._refused.items():
            timer.cancel()
            sock.close()
        self._refused.clear()
