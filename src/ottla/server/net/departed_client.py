"""Gone: whether a client has left, though nothing is read from it at the moment."""

from __future__ import annotations

from socket import MSG_PEEK
from typing import Any


def has_left(sock: Any) -> bool:
    """Whether the peer sends no more and all that it sent was read; a socket that is closed here counts as well."""
    try:
        return not sock.recv(1, MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
