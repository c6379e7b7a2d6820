"""`HOST:PORT` on the command line, and a check whether a node can listen there, before anything is written."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from ottla.cli.terminal.plain import CommandError
from ottla.model.hosts import is_host

if TYPE_CHECKING:
    from collections.abc import Iterable

PORT_MAX = 65_535
DEFAULT_HOST = "127.0.0.1"
_PLACES = "--listen takes an address of this machine: 127.0.0.1:9092, or 0.0.0.0:9092 for all of them"


def host_and_port(text: str, default_host: str = DEFAULT_HOST) -> tuple[str, int]:
    """Parse `HOST:PORT`, `:PORT`, `[v6]:PORT` or `NAME://HOST:PORT`; raises ValueError if it is none of them.

    With an empty `default_host`, `:PORT` is refused.
    """
    host, colon, port = text.rpartition("://")[2].rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()):
        raise ValueError(f"{text!r} is not HOST:PORT")
    if int(port) > PORT_MAX:
        raise ValueError(f"{text!r} is not HOST:PORT: ports go from 0 to {PORT_MAX}")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host or default_host
    if not is_host(host):
        raise ValueError(f"{text!r} is not HOST:PORT: {host!r} is not the name of a host")
    return host, int(port)


def metrics_url(host: str, port: int, has_tls: bool) -> str:
    """Where a browser or Prometheus finds the metrics of a node."""
    scheme = "https" if has_tls else "http"
    return f"{scheme}://[{host}]:{port}/metrics" if ":" in host else f"{scheme}://{host}:{port}/metrics"


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
