"""Addresses as users write them, and where a node tells its metrics."""

from __future__ import annotations

from ottla.model.hosts import is_host

PORT_MAX = 65_535
DEFAULT_HOST = "127.0.0.1"


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
