"""The network port, which opens listening sockets. `sim/world/net.py` has the simulated one."""

from __future__ import annotations

import socket
from typing import Any, Protocol

from ottla.model import limits


class Net(Protocol):
    def listen(self, host: str, port: int) -> Any:
        """Return a non-blocking, listening socket (or an object that behaves like one)."""


class OsNet:
    """Real TCP."""

    def listen(self, host: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, port), family=family, backlog=limits.LISTEN_BACKLOG_MAX)
        sock.setblocking(False)
        return sock
