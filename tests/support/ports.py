"""Free loopback ports for servers that must be told their port."""

import socket


def free_ports(count: int) -> list[int]:
    """Distinct ports that were free a moment ago (all held at once, so that the kernel cannot give one twice)."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()
