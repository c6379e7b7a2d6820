"""The endpoints that a node registers in the metadata: what other nodes and tools read there."""

from __future__ import annotations

from ottla.cluster.entities import Endpoint
from ottla.model.config import Config
from ottla.server.listener import Endpoint as Address
from ottla.server.listeners import EVERY_INTERFACE, advertised, listened, security_protocols

_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def broker_endpoints(settings: Config) -> tuple[Endpoint, ...]:
    """Where clients come in: as advertised, or else as listened on."""
    found = _endpoints(settings, advertised(settings) or listened(settings))
    return tuple(endpoint for endpoint in found if endpoint.name not in _controller_names(settings))


def controller_endpoints(settings: Config) -> tuple[Endpoint, ...]:
    """Where other controllers would come in."""
    return tuple(end for end in _endpoints(settings, listened(settings)) if end.name in _controller_names(settings))


def _controller_names(settings: Config) -> tuple[str, ...]:
    if not settings.is_set("controller.listener.names"):
        return ()
    return tuple(name.upper() for name in settings.get("controller.listener.names"))


def _endpoints(settings: Config, addresses: list[Address]) -> list[Endpoint]:
    protocols = security_protocols(settings)
    return [
        Endpoint(
            end.name,
            "localhost" if end.host == EVERY_INTERFACE else end.host,
            end.port,
            _PROTOCOLS.get(protocols.get(end.name, end.name), 0),
        )
        for end in addresses
    ]
