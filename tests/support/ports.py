"""Free loopback ports for servers that must be told their port.

None of those that the kernel gives to connections: while a node is down somebody's connection would take its port, and
whoever dials a dead node again and again may even be connected to itself. For the same reason none is given twice, and
each of pytest's workers has a range of its own: between being found free and being listened on, a port is nobody's.
"""

import os
import random
import socket
from pathlib import Path

FIRST = 10_000
ABOVE = 1_100  # `ottla up --brokers` is told one port, and takes others up to so far above it
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
    """All ports, or this worker's share of them."""
    end = int(_GIVEN_BY_KERNEL.read_text().split()[0]) if _GIVEN_BY_KERNEL.exists() else 32_768
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = (end - ABOVE - FIRST) // workers
    first = FIRST + number % workers * share  # one that took the place of a worker that died has a higher number
    return range(first, first + share)
