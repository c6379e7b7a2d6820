"""Simulated sockets: the methods of a non-blocking socket that the server uses, and no others.

A connection is two `SimSocket`s. Each has the bytes it sent that the other has not received (`_queue`), and the bytes
it received and did not read (`_inbox`). `pump` delivers the queue when its head is due and the link works.
"""

from __future__ import annotations

import asyncio
import errno
import zlib
from collections import deque
from collections.abc import Sequence
from socket import MSG_PEEK
from typing import TYPE_CHECKING

from ottla.sim.world.links import Links
from ottla.sim.world.loop import SimHost

if TYPE_CHECKING:
    from typing_extensions import Buffer

Address = tuple[str, int]


class SimListeningSocket:
    """Accepts connections that `SimNet.connect` enqueues."""

    def __init__(self, net: Links, host: SimHost, port: int) -> None:
        self.net = net
        self.host = host
        self.address: Address = (host.address, port)
        self.closed = False
        self._waiting: deque[SimSocket] = deque()
        self.number = net.register(self)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= self.net.quality.backlog

    def enqueue(self, socket: SimSocket) -> None:
        self._waiting.append(socket)
        self.net.loop.touch(self.number)

    def readable(self) -> bool:
        return bool(self._waiting)

    def writable(self) -> bool:
        return False

    def accept(self) -> tuple[SimSocket, Address]:
        if self.closed:
            raise OSError(errno.EBADF, "the listening socket is closed")
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "no connection waits")
        socket = self._waiting.popleft()
        return socket, socket.remote

    def fileno(self) -> int:
        return -1 if self.closed else self.number

    def getsockname(self) -> Address:
        return self.address

    def setsockopt(self, *options: object) -> None:
        """Nothing to do: options have no effect here."""

    def setblocking(self, flag: bool) -> None:
        """Nothing to do: it is always non-blocking."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.net.unregister(self)
            for socket in self._waiting:
                socket.close()

    def vanish(self) -> None:
        self.closed = True
        self.net.unregister(self)


class SimSocket:
    """One end of a connection."""

    def __init__(self, net: Links, host: SimHost, local: Address, remote: Address) -> None:
        self.net = net
        self.host = host
        self.local = local
        self.remote = remote
        self.peer: SimSocket | None = None
        self.closed = False
        self._inbox = bytearray()
        self._ended = False  # the peer will not send any more
        self._error: OSError | None = None
        self._queue: deque[tuple[float, bytes | None]] = deque()  # (due, bytes or None for the end), in order
        self._unreceived_bytes = 0
        self._last_due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stuck_since: float | None = None
        self.number = net.register(self)

    # --- called by the server

    def recv(self, size_bytes: int, flags: int) -> bytes:
        assert flags == MSG_PEEK, "others read into a buffer"
        if not self._inbox:
            self._check()
            if not self._ended:
                raise BlockingIOError(errno.EAGAIN, "nothing to read")
        return bytes(self._inbox[:size_bytes])

    def recv_into(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._inbox:
            count = self.net.shortened(min(len(view), len(self._inbox)))
            was_full = self.peer is not None and self.peer._room() <= 0
            view[:count] = self._inbox[:count]
            del self._inbox[:count]
            if self.peer is not None and was_full:
                self.net.later(self.net.latency(), self.net.loop.touch, self.peer.number)
            return count
        self._check()
        if self._ended:
            return 0
        raise BlockingIOError(errno.EAGAIN, "nothing to read")

    def send(self, data: Buffer) -> int:
        return self.sendmsg([data])

    def sendmsg(self, buffers: Sequence[Buffer]) -> int:
        self._check()
        room = self._room()
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "the window is full")
        view = _gathered(buffers, room)
        data = view[: self.net.shortened(len(view))]
        if data:
            self._enqueue(data)
            rate = self.net.quality.reset_rate
            if rate and self.net.rng.random() < rate:
                self.net.later(self.net.latency(), self.break_connection)
        return len(data)

    def fileno(self) -> int:
        return -1 if self.closed else self.number

    def getsockname(self) -> Address:
        return self.local

    def getpeername(self) -> Address:
        return self.remote

    def setsockopt(self, *options: object) -> None:
        """Nothing to do: options have no effect here."""

    def setblocking(self, flag: bool) -> None:
        """Nothing to do: it is always non-blocking."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.net.unregister(self)
        if self._inbox:
            self.abort()
        elif self._error is None:
            self._enqueue(None)

    # --- called by the network

    def readable(self) -> bool:
        return bool(self._inbox) or self._ended or self._error is not None

    def writable(self) -> bool:
        return self._error is not None or self._room() > 0

    def abort(self) -> None:
        """Close at once, dropping bytes in transit: the peer gets a reset."""
        if not self.closed:
            self.closed = True
            self.net.unregister(self)
        self._drop_queue()
        if self.peer is not None:
            self.net.later(self.net.latency(), self.peer.reset_by, self)

    def vanish(self) -> None:
        """The machine lost power: some of the sent bytes are on the wire, everything else is lost."""
        self.closed = True
        self.net.unregister(self)
        kept = self.net.rng.randint(0, len(self._queue))
        while len(self._queue) > kept:
            self._queue.pop()

    def break_connection(self) -> None:
        """Reset both ends, as a middlebox would; bytes in transit are lost."""
        self._drop_queue()
        self.fail(ConnectionResetError(errno.ECONNRESET, "connection reset by the network"))
        if self.peer is not None:
            self.peer._drop_queue()
            self.peer.fail(ConnectionResetError(errno.ECONNRESET, "connection reset by the network"))

    def reset_by(self, peer: SimSocket) -> None:
        """A reset arrives from the peer; it is lost if the link is cut."""
        if self.net.reachable(peer.host, self.host):
            self.fail(ConnectionResetError(errno.ECONNRESET, "connection reset by peer"))

    def fail(self, error: OSError) -> None:
        if self._error is None and not self.closed:
            self._error = error
            self._inbox.clear()
            self._drop_queue()
            self.net.loop.note("reset", self.number)
            self.net.loop.touch(self.number)

    def _room(self) -> int:
        unread = len(self.peer._inbox) if self.peer is not None else 0
        return self.net.quality.window_bytes - self._unreceived_bytes - unread

    def _check(self) -> None:
        if self.closed:
            raise OSError(errno.EBADF, "the socket is closed")
        if self._error is not None:
            raise self._error

    def _enqueue(self, data: bytes | None) -> None:
        size = len(data) if data is not None else 0
        arrives = self.net.loop.time() + self.net.latency(self.host)
        due = max(self._last_due, arrives) + size / self.net.quality.bytes_per_second
        self._last_due = due
        self._queue.append((due, data))
        self._unreceived_bytes += size
        self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._queue:
            self._timer = self.net.later(max(0.0, self._queue[0][0] - self.net.loop.time()), self._due)

    def _due(self) -> None:
        self._timer = None
        self.pump()

    def pump(self) -> None:
        """Deliver what is due; hold it back while the link is cut or the other machine is off."""
        peer = self.peer
        now = self.net.loop.time()
        while self._queue and peer is not None and self._queue[0][0] <= now:
            if not self.net.reachable(self.host, peer.host):
                self._wait_for_the_link(now)
                return
            self._stuck_since = None
            _, data = self._queue.popleft()
            self._unreceived_bytes -= len(data) if data is not None else 0
            peer.receive(data)
        self._arm()

    def receive(self, data: bytes | None) -> None:
        if self.closed or self._error is not None:
            if data is not None and self.peer is not None:
                self.net.later(self.net.latency(), self.peer.reset_by, self)
            return
        if data is None:
            self._ended = True
        else:
            self._inbox += data
            self.net.loop.note("data", self.number, len(data), zlib.crc32(data))
        self.net.loop.touch(self.number)

    def _wait_for_the_link(self, now: float) -> None:
        """Retransmit later, or when `SimNet.heal` is called; give up in the end, which only this side notices."""
        if self._stuck_since is None:
            self._stuck_since = now
        if now - self._stuck_since > self.net.quality.give_up_seconds:
            self._drop_queue()
            self.fail(TimeoutError(errno.ETIMEDOUT, "the peer does not answer"))
        elif self._timer is None:
            self._timer = self.net.later(self.net.rng.uniform(0.2, 2.0), self._due)

    def _drop_queue(self) -> None:
        self._queue.clear()
        self._unreceived_bytes = 0


def _gathered(buffers: Sequence[Buffer], limit_bytes: int) -> bytes:
    """Return the first bytes of several buffers, without copying more than will be used."""
    parts: list[memoryview] = []
    size = 0
    for buffer in buffers:
        part = memoryview(buffer).cast("B")[: limit_bytes - size]
        parts.append(part)
        size += len(part)
        if size >= limit_bytes:
            break
    return b"".join(parts)
