"""The network port, which opens listening sockets. `sim/world/net.py` has the simulated one."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from ottla.model import limits
from ottla.records.batch import Buffer

# A host and a port; with IPv6, more follows.
SocketAddress: TypeAlias = tuple[str, int]


class Socket(Protocol):
    """The part of a connected, non-blocking socket that a node uses."""

    def recv(self, size_bytes: int, flags: int, /) -> bytes: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def send(self, data: Buffer, /) -> int: ...

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int: ...

    def fileno(self) -> int: ...

    def getsockname(self) -> SocketAddress: ...

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...

    def setblocking(self, flag: bool, /) -> None: ...

    def close(self) -> None: ...


class ListeningSocket(Protocol):
    """The part of a non-blocking, listening socket that a node uses."""

    def accept(self) -> tuple[Socket, SocketAddress]: ...

    def fileno(self) -> int: ...

    def getsockname(self) -> SocketAddress: ...

    def close(self) -> None: ...


class Net(Protocol):
    def listen(self, host: str, port: int) -> ListeningSocket:
        """Return a socket that listens on an address."""


class OsNet:
    """Real TCP."""

    def listen(self, host: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, port), family=family, backlog=limits.LISTEN_BACKLOG_MAX)
        sock.setblocking(False)
        return sock
