"""Detecting that a client has disconnected while nothing is read from its connection."""

from __future__ import annotations

from socket import MSG_PEEK

from ottla.server.ports.sockets import Socket


def has_left(sock: Socket) -> bool:
    """Return whether the peer sends no more and all that it sent was read; also True for a socket that was
    closed here.
    """
    try:
        return not sock.recv(1, MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
