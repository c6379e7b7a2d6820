"""Free loopback ports for servers that must be told their port.

They are not from the kernel's range for outgoing connections: while a node is down a connection could take its port,
and a client that connects to a dead node repeatedly may even be connected to itself. For the same reason no port is
returned twice, and each of pytest's workers has a range of its own: another process could take a port between the check
that it is free and the server's start.
"""

import os
import random
import socket
from pathlib import Path

FIRST = 10_000
ABOVE = 1_100  # `ottla up --brokers` gets one port, and takes others up to so far above it
_GIVEN_BY_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")

_rng = random.SystemRandom()  # tests may seed the usual one
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Distinct ports that were free a moment ago (all held at once)."""
    held: list[socket.socket] = []
    ports = _own_range()
    try:
        while len(held) < count:
            if (port := _rng.choice(ports)) in _given:
                continue
            try:
                held.append(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue  # in use
            _given.add(port)
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _own_range() -> range:
    """All ports, or this worker's part of them."""
    end = int(_GIVEN_BY_KERNEL.read_text().split()[0]) if _GIVEN_BY_KERNEL.exists() else 32_768
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = (end - ABOVE - FIRST) // workers
    first = FIRST + number % workers * share  # a worker that replaces one that died has a higher number
    return range(first, first + share)
