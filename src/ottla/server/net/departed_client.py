"""Clients that have disconnected: how that is detected while nothing is read, and what is left of their connections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from socket import MSG_PEEK

from ottla.server.ports.sockets import Socket

log = logging.getLogger(__name__)


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


def stop_all(stops: Iterable[Callable[[], object]], address: tuple[str, int]) -> None:
    """Stop the work that is done for a client that has left."""
    for stop in stops:
        try:
            stop()
        except Exception:  # a bug; the rest has to be stopped all the same, and the connection has to end
            log.exception("work for %s could not be stopped", address)
