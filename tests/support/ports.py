"""Free loopback ports for servers that must be told their port.

They are not from the kernel's range for outgoing connections: while a node is down a connection could take its port,
and a client that connects to a dead node repeatedly may even be connected to itself. For the same reason no port is
returned twice, and each of pytest's workers has a range of its own: another process could take a port between the check
that it is free and the server's start. Test runs beside this one have the same ranges, so a process locks the ports
that it was given: the port of a node that is being restarted looks free to others.
"""

import fcntl
import os
import random
import socket
from pathlib import Path

FIRST = 10_000
ABOVE = 1_100  # `ottla up --brokers` gets one port, and takes others up to so far above it
_GIVEN_BY_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Byte N is locked by the process that port N belongs to. Not in a test run's own directory for temporary files.
_LOCKS = os.open(f"/tmp/ottla-test-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

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
            if not _lock(port):
                held.pop().close()
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()


def _lock(port: int) -> bool:
    """Lock the port until this process ends; False if it belongs to another process."""
    try:
        fcntl.lockf(_LOCKS, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _given.add(port)
    return True


def _own_range() -> range:
    """All ports, or this worker's part of them."""
    end = int(_GIVEN_BY_KERNEL.read_text().split()[0]) if _GIVEN_BY_KERNEL.exists() else 32_768
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = (end - ABOVE - FIRST) // workers
    first = FIRST + number % workers * share  # a worker that replaces one that died has a higher number
    return range(first, first + share)
