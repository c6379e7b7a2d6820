"""TlsTransport: a connection of the metrics endpoint over TLS, as asyncio's transports are.

Its handshake was taken by `net/handshakes.py`, which bounds it; from there on a `TlsSocket` is read and written here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.model import limits


class SecuredSocket(Protocol):
    """What is used of a `TlsSocket`."""

    fileno: Callable[[], int]
    has_more: bool

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def send(self, data: bytes, /) -> int: ...

    def close(self) -> None: ...


class TlsTransport(asyncio.Transport):
    def __init__(self, loop: asyncio.AbstractEventLoop, sock: SecuredSocket, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._sock = sock
        self._fileno = sock.fileno()
        self._protocol = protocol
        self._unsent: deque[bytes] = deque()
        self._buffer = memoryview(bytearray(limits.METRICS_REQUEST_BYTES_MAX))
        self._is_closing = self._is_closed = False
        protocol.connection_made(self)
        loop.add_reader(self._fileno, self._read)
        loop.call_soon(self._read)  # what came with the handshake is not seen by the loop

    def _read(self) -> None:
        if self._is_closing:
            return
        try:
            size = self._sock.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError:
            self.abort()
            return
        if size:
            self._protocol.data_received(bytes(self._buffer[:size]))
            if self._sock.has_more:
                self._loop.call_soon(self._read)
        else:
            self._loop.remove_reader(self._fileno)
            if not self._protocol.eof_received():
                self.close()

    def write(self, data: bytes | bytearray | memoryview[int]) -> None:
        self._unsent.append(bytes(data))
        if len(self._unsent) == 1 and not self._is_closed:
            self._send()
            if self._unsent:
                self._protocol.pause_writing()
                self._loop.add_writer(self._fileno, self._send_rest)

    def _send(self) -> None:
        try:
            while self._unsent:
                self._sock.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self.abort()

    def _send_rest(self) -> None:
        self._send()
        if self._unsent or self._is_closed:
            return
        self._loop.remove_writer(self._fileno)
        self._protocol.resume_writing()
        if self._is_closing and not self._unsent:
            self.abort()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._unsent))

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Close the connection when all is sent."""
        self._is_closing = True
        if not self._unsent:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._is_closed:
            return
        self._is_closing = self._is_closed = True
        self._unsent.clear()
        self._loop.remove_reader(self._fileno)
        self._loop.remove_writer(self._fileno)
        self._sock.close()
        self._loop.call_soon(self._protocol.connection_lost, None)
