"""TlsAcceptor: accepts the connections of an HTTPS port and has their TLS handshakes done, bounded in time and number.

The server behind it sees a connection only after its handshake. So a client that connects and says nothing must be
bounded here: when there are too many unfinished handshakes, or no more descriptors, the oldest is given up. When one
address has too many of them, its own oldest is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from ottla.model import limits
from ottla.web.oldest import OldestFirst

log = logging.getLogger(__name__)


class TlsAcceptor:
    def __init__(
        self,
        listening: socket.socket,
        tls: ssl.SSLContext,
        make_protocol: Callable[[], asyncio.Protocol],
        *,
        backlog: int,
        unfinished_max: int,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._tls = tls
        self._make_protocol = make_protocol
        self._backlog = backlog
        self._unfinished_max = unfinished_max
        self._unfinished: OldestFirst[asyncio.Task[None]] = OldestFirst()
        self._sockets: dict[asyncio.Task[None], socket.socket] = {}  # of those that are unfinished
        self._given_up: list[asyncio.Task[None]] = []  # by `close`
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._listening.listen(self._backlog)
        self._resume()

    def close(self) -> None:
        """Accept no more connections, and give up unfinished handshakes."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        self._given_up = list(self._unfinished)
        for task in self._given_up:
            self._give_up(task)

    async def wait_closed(self) -> None:
        """Wait until the handshakes that `close` gave up have ended."""
        if self._given_up:
            await asyncio.wait(self._given_up)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(limits.HTTPS_ACCEPTED_AT_ONCE_MAX):
            try:
                sock, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # mostly: no descriptor is left
                self._make_room(error)
                return
            sock.setblocking(False)
            self._begin(sock, str(peer[0]))

    def _begin(self, sock: socket.socket, host: str) -> None:
        if self._unfinished.count_of(host) >= max(1, self._unfinished_max // limits.HTTP_ADDRESS_PART):
            self._give_up(self._unfinished.oldest_of(host))
        elif len(self._unfinished) >= self._unfinished_max:
            self._give_up(self._unfinished.oldest())
        task = self._loop.create_task(self._shake_hands(sock))
        self._unfinished.add(task, host)
        self._sockets[task] = sock
        task.add_done_callback(self._done)

    def _make_room(self, error: OSError) -> None:
        if self._unfinished:
            self._give_up(self._unfinished.oldest())
            return
        log.warning("no connection can be accepted for a moment: %s", error)
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(limits.HTTPS_ACCEPT_PAUSE_S, self._resume)

    async def _shake_hands(self, sock: socket.socket) -> None:
        await self._loop.connect_accepted_socket(
            self._make_protocol, sock, ssl=self._tls, ssl_handshake_timeout=limits.HTTPS_HANDSHAKE_S
        )

    def _done(self, task: asyncio.Task[None]) -> None:
        sock = self._forget(task)
        error = None if task.cancelled() else task.exception()
        if sock is not None and (task.cancelled() or error is not None):
            sock.close()
        if error is not None and not isinstance(error, OSError):  # a handshake that fails is an OSError
            log.error("a connection could not be served", exc_info=error)

    def _give_up(self, task: asyncio.Task[None] | None) -> None:
        if task is not None:
            sock = self._forget(task)
            task.cancel()
            if sock is not None:
                sock.close()

    def _forget(self, task: asyncio.Task[None]) -> socket.socket | None:
        """Take a handshake out of those that are unfinished; return its socket, None if it was given up before."""
        self._unfinished.discard(task)
        return self._sockets.pop(task, None)
