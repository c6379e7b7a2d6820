"""The address of the node's metrics endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.own import OTTLA_METRICS_LISTENER

_LOCALHOST = "localhost"


def metrics_address(settings: Config) -> tuple[str, int] | None:
    """Return host and port; None if the endpoint is off. Raises ValueError if that is no address of loopback."""
    text = settings[OTTLA_METRICS_LISTENER]
    if not text:
        return None
    host, _, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (port.isascii() and port.isdecimal() and int(port) <= limits.PORT_MAX):
        raise ValueError(f"{OTTLA_METRICS_LISTENER.name} is {text}, which is not HOST:PORT")
    if not _is_loopback(host):
        # The endpoint has no users and no encryption: what it tells is for this machine.
        raise ValueError(
            f"{OTTLA_METRICS_LISTENER.name} is {text}, but the endpoint serves loopback only, without users and TLS: "
            f"127.0.0.1:{port} is possible, and a proxy or an agent on this machine that passes metrics on"
        )
    return host, int(port)


def metrics_problems(settings: Config) -> Iterator[str]:
    try:
        metrics_address(settings)
    except ValueError as error:
        yield str(error)


def _is_loopback(host: str) -> bool:
    try:
        return host == _LOCALHOST or ip_address(host).is_loopback
    except ValueError:
        return False
