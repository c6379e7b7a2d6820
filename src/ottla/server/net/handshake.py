"""Handshake: one TLS handshake. It waits for its socket, is due, and takes a step, until it is done or has failed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from socket import MSG_PEEK, socket
from typing import Protocol, TypeAlias

from ottla.model import limits
from ottla.server.net.tls_pipe import TlsPipe
from ottla.server.net.tls_socket import TlsSocket

log = logging.getLogger(__name__)

# The errors of a client that disconnects in the middle, as health checks do.
_LEFT = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

# Called with the socket of a handshake that succeeded.
Done: TypeAlias = Callable[[TlsSocket], None]


class Owner(Protocol):
    """What a handshake tells those who have begun it."""

    def due(self, handshake: Handshake) -> None:
        """Have the next step of a handshake taken soon."""

    def left(self, handshake: Handshake) -> None:
        """Forget a handshake that has ended."""

    def on_refused(self, address: str, reason: str) -> None:
        """Note that a handshake failed because of what one side showed to the other."""


class Handshake:
    def __init__(
        self,
        owner: Owner,
        loop: asyncio.AbstractEventLoop,
        raw: socket,
        secured: Callable[[TlsPipe], TlsSocket],
        address: str,
        done: Done,
    ) -> None:
        """`secured` makes the TlsSocket, when the client has sent something: until then it costs little."""
        self.address = address
        self._owner = owner
        self._loop = loop
        self._raw = raw
        self._secured = secured
        self._sock: TlsSocket | None = None
        self._pipe: TlsPipe | None = None
        self._fileno = raw.fileno()
        self._done = done
        self.in_worker = False  # whether a worker takes a step
        self._waits_for = ""
        self._waits_since_s = 0.0
        self._waited_s = 0.0  # for the client, before the present wait
        self._is_over = False
        self._is_refused = False  # whether it failed for what the two sides showed, not because one has left
        self._deadline = loop.call_later(limits.TLS_HANDSHAKE_S, self.end, "it took too long")

    def is_idle(self, *, at_once: bool) -> bool:
        """Return whether it may be given up for another one: the client has kept the node waiting for long; with
        `at_once`, for any time. A handshake that waits for the node itself is not idle.

        A client says hello in the moment in which it connects, however far away it is. Until the node has answered its
        hello, it is given a short time only; then it needs round trips.
        """
        if not self._waits_for or at_once:
            return bool(self._waits_for)
        is_answered = self._sock is not None and self._sock.has_answered
        patience_s = limits.TLS_HANDSHAKE_PATIENCE_S if is_answered else limits.TLS_HELLO_PATIENCE_S
        waited_s = self._waited_s + self._loop.time() - self._waits_since_s
        return waited_s >= patience_s and not self._has_sent_more()

    def _has_sent_more(self) -> bool:
        """Whether there are bytes that the loop has not noticed yet, in a turn that came late, say."""
        try:
            return self._waits_for == "reader" and bool(self._raw.recv(1, MSG_PEEK))
        except OSError:  # nothing is there, or the client has left
            return False

    def wait_for(self, readiness: str) -> None:
        """Wait until the socket is ready for the "reader" or the "writer"."""
        self._waits_for = readiness
        self._waits_since_s = self._loop.time()
        watch = self._loop.add_reader if readiness == "reader" else self._loop.add_writer
        watch(self._fileno, self._ready)

    def _ready(self) -> None:
        self._waited_s += self._loop.time() - self._waits_since_s
        self._stop_waiting()
        self._owner.due(self)

    def _stop_waiting(self) -> None:
        if self._waits_for:
            unwatch = self._loop.remove_reader if self._waits_for == "reader" else self._loop.remove_writer
            unwatch(self._fileno)
            self._waits_for = ""

    @property
    def needs_pipe(self) -> bool:
        """Whether its first step has yet to be prepared."""
        return self._sock is None and not self._is_over

    @property
    def stays_on_loop(self) -> bool:
        """Whether its steps are not for workers, because it shares its pipe with connections."""
        return self._pipe is None or self._pipe.is_shared

    def begin(self, pipe: TlsPipe) -> None:
        """Prepare the first step. Raise OSError or ValueError if the TLS settings do not fit together."""
        self._pipe, self._sock = pipe, self._secured(pipe)

    def step(self) -> str:
        """Take a step, perhaps in a worker; return what to wait for, "" if it is done, or the reason of the failure."""
        if self._is_over or self._sock is None:
            return ""
        try:
            return self._sock.step()
        except (OSError, ValueError) as error:  # no TLS, no common cipher, a bad certificate, a reset
            self._is_refused = isinstance(error, ssl.SSLError) and not isinstance(error, _LEFT)
            return reason_of(error)

    def stepped(self, outcome: str) -> None:
        self.in_worker = False
        if self._is_over or self._sock is None:
            self._close()  # it was given up while it waited for its step
        elif outcome in ("reader", "writer"):
            self.wait_for(outcome)
        elif outcome:
            self.end(outcome)
        else:
            self._leave()
            self._done(self._sock)

    def end(self, reason: str) -> None:
        """Give up. The socket is closed at once, unless a worker is using it."""
        if self._is_over:
            return
        log.info("the TLS handshake with %s failed: %s", self.address, reason)
        if self._is_refused:
            self._owner.on_refused(self.address, reason)
        self._leave()
        if not self.in_worker:
            self._close()

    def discard(self) -> None:
        """Close the socket, whatever has become of the handshake."""
        self.end("an error of the server")
        self._close()

    def _close(self) -> None:
        (self._raw if self._sock is None else self._sock).close()

    def _leave(self) -> None:
        self._is_over = True
        self._deadline.cancel()
        self._stop_waiting()
        self._owner.left(self)


def reason_of(error: Exception) -> str:
    """Return OpenSSL's reason in words; certificates that were refused keep the verifier's text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error) or type(error).__name__
