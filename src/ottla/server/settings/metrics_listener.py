"""The address of the node's metrics endpoint: HOST:PORT on loopback, or HTTPS://HOST:PORT anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from ottla.model import limits
from ottla.model.config import Config
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.server.settings.listeners import EVERY_INTERFACE, ListenerAddress

# The name of the endpoint among the node's listeners: `listener.name.metrics.ssl.keystore.location`.
METRICS: Final = "METRICS"
_LOCALHOST = "localhost"
_HTTPS = "https://"


class MetricsPlace(NamedTuple):
    """Where the endpoint listens; with TLS it has users, too."""

    host: str
    port: int
    has_tls: bool = False


def metrics_place(text: str) -> MetricsPlace:
    """Return the place that a text names. Raises ValueError if it names none, or one where nothing may be told."""
    has_tls = text.lower().startswith(_HTTPS)
    host, _, port = (text[len(_HTTPS) :] if has_tls else text).rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (port.isascii() and port.isdecimal() and int(port) <= limits.PORT_MAX) or (has_tls and not host):
        raise ValueError(f"{OTTLA_METRICS_LISTENER.name} is {text}, which is neither HOST:PORT nor HTTPS://HOST:PORT")
    if not has_tls and not _is_loopback(host):
        # Without encryption and users, what the endpoint tells is for this machine.
        raise ValueError(
            f"{OTTLA_METRICS_LISTENER.name} is {text}, but without TLS and users the endpoint serves loopback only: "
            f"127.0.0.1:{port} is possible, and HTTPS://{host or '0.0.0.0'}:{port}, which has the node's TLS and users"
        )
    return MetricsPlace(host, int(port), has_tls)


def metrics_address(settings: Config) -> MetricsPlace | None:
    """Return where the endpoint listens; None if it is off. Raises ValueError."""
    text = settings[OTTLA_METRICS_LISTENER]
    return metrics_place(text) if text else None


def has_secured_metrics(settings: Config) -> bool:
    """Whether the endpoint has TLS and users."""
    place = metrics_address(settings)
    return place is not None and place.has_tls


def metrics_problems(settings: Config, listeners: Sequence[ListenerAddress]) -> Iterator[str]:
    try:
        place = metrics_address(settings)
    except ValueError as error:
        yield str(error)
    else:
        if place is None:
            return
        if place.has_tls and any(each.name == METRICS for each in listeners):
            yield f"a listener is named {METRICS}, which is the name of the metrics endpoint for its TLS settings"
        for each in listeners:
            if each.port == place.port != 0 and (each.host == place.host or EVERY_INTERFACE in (each.host, place.host)):
                yield (
                    f"{OTTLA_METRICS_LISTENER.name} and listener {each.name} both have port {place.port}: each needs "
                    "one of its own"
                )


def _is_loopback(host: str) -> bool:
    try:
        return host == _LOCALHOST or ip_address(host).is_loopback
    except ValueError:
        return False
