"""A check whether a node can listen at an address, before anything is written."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model.settings.network import LISTENERS
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable


class ListenPurpose(NamedTuple):
    """What a node listens for: as messages say it, what sets the address, and what would be one."""

    words: str
    option: str
    example: str


CLIENTS: Final = ListenPurpose(
    "", f"--listen HOST:PORT ({LISTENERS.name})", "127.0.0.1:9092, or 0.0.0.0:9092 for all of them"
)
METRICS: Final = ListenPurpose(
    " for metrics", f"{OTTLA_METRICS_LISTENER.name} (--set, or the node's properties file)", "127.0.0.1:9404"
)


def check_free(places: Iterable[tuple[str, int]], purpose: ListenPurpose = CLIENTS) -> None:
    """Raise CommandError for the first address where this machine cannot listen, or where another process does."""
    for host, port in places:
        what = f"cannot listen on {host}:{port}{purpose.words}"
        try:
            found = socket.getaddrinfo(host, port, _family(host), socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, address in found:
                with socket.socket(family, kind, protocol) as trial:
                    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    if family == socket.AF_INET6:
                        trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    trial.bind(address)
        except OSError as error:
            raise CommandError(f"{what}: {error.strerror}", _hint(error, purpose)) from None
        except UnicodeError:  # from getaddrinfo: it cannot be written as DNS writes names
            raise CommandError(f"{what}: that is not the name of a host", _of_this_machine(purpose)) from None


def _family(host: str) -> socket.AddressFamily:
    """The family in which a node listens at this host."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _hint(error: OSError, purpose: ListenPurpose) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"is another node running here? {purpose.option} takes another address"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return _of_this_machine(purpose)
    return f"{purpose.option} takes another address"


def _of_this_machine(purpose: ListenPurpose) -> str:
    return f"{purpose.option} takes an address of this machine: {purpose.example}"
