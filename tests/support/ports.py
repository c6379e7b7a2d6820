"""Free loopback ports for servers that must be told their port.

None of those that the kernel gives to connections: while a node is down somebody's connection would take its port, and
whoever dials a dead node again and again may even be connected to itself.
"""

import random
import socket
from pathlib import Path

FIRST = 10_000
_GIVEN_BY_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Distinct ports that were free a moment ago (all held at once)."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            try:
                held.append(socket.create_server(("127.0.0.1", random.randrange(FIRST, _end()))))
            except OSError:
                continue  # in use
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _end() -> int:
    return int(_GIVEN_BY_KERNEL.read_text().split()[0]) if _GIVEN_BY_KERNEL.exists() else 32_768
