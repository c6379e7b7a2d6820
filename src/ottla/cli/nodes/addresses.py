"""A check whether a node can listen at an address, before anything is written."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLACES = "--listen takes an address of this machine: 127.0.0.1:9092, or 0.0.0.0:9092 for all of them"


def check_free(places: Iterable[tuple[str, int]]) -> None:
    """Raise CommandError for the first address where this machine cannot listen, or where another process does."""
    for host, port in places:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, address in found:
                with socket.socket(family, kind, protocol) as trial:
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if family == socket.AF_INET6:
                        trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    trial.bind(address)
        except OSError as error:
            raise CommandError(f"cannot listen on {host}:{port}: {error.strerror}", _hint(error)) from None
        except UnicodeError:  # from getaddrinfo: it cannot be written as DNS writes names
            raise CommandError(f"cannot listen on {host}:{port}: that is not the name of a host", _PLACES) from None


def _hint(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "is another node running here? --listen HOST:PORT takes another address"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return _PLACES
    return "--listen HOST:PORT takes another address"
