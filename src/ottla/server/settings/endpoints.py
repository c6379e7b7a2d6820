"""The endpoints that a node registers in the metadata, for other nodes and tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.cluster.entities import ListenerEndpoint
from ottla.model.config import Config
from ottla.model.settings.authorizer import EARLY_START_LISTENERS
from ottla.model.settings.controller import CONTROLLER_LISTENER_NAMES
from ottla.model.settings.network import INTER_BROKER_LISTENER_NAME, SECURITY_INTER_BROKER_PROTOCOL
from ottla.security.protocol import SecurityProtocol
from ottla.server.settings.listeners import (
    EVERY_INTERFACE,
    ListenerAddress,
    advertised,
    listened,
    security_protocols,
)


def broker_endpoints(settings: Config) -> tuple[ListenerEndpoint, ...]:
    """Return the endpoints for clients: as advertised, or else as listened on."""
    found = _endpoints(settings, _told(settings))
    return tuple(endpoint for endpoint in found if endpoint.name not in controller_names(settings))


def controller_endpoints(settings: Config) -> tuple[ListenerEndpoint, ...]:
    """Return the endpoints for other controllers and brokers: as advertised, or else as listened on."""
    told = {address.name: address for address in advertised(settings)}
    addresses = [told.get(address.name, address) for address in listened(settings)]
    return tuple(end for end in _endpoints(settings, addresses) if end.name in controller_names(settings))


def registered_endpoints(
    endpoints: Iterable[ListenerEndpoint], ports: Mapping[str, int]
) -> tuple[ListenerEndpoint, ...]:
    """Fill in the actual port of each listener whose port was chosen by the system."""
    return tuple(end if end.port else end._replace(port=ports.get(end.name, 0)) for end in endpoints)


def controller_names(settings: Config) -> tuple[str, ...]:
    if not settings.is_set(CONTROLLER_LISTENER_NAMES):
        return ()
    return tuple(name.upper() for name in settings[CONTROLLER_LISTENER_NAMES])


def early_names(settings: Config) -> tuple[str, ...]:
    """Return the names of the listeners that may open before the ACLs are loaded: as set, or else the controllers'."""
    named = settings[EARLY_START_LISTENERS]
    return controller_names(settings) if named is None else named


def inter_broker_listener(settings: Config) -> str:
    """Return the name of the inter-broker listener: as set, or else the one of the inter-broker security protocol.

    If neither is set it is the first listener, so that a node with one listener of any name needs no further setting.
    """
    name = settings[INTER_BROKER_LISTENER_NAME]
    if name is not None:
        return name.upper()
    names = [end.name for end in broker_endpoints(settings)]
    protocol = settings[SECURITY_INTER_BROKER_PROTOCOL].upper()
    is_chosen = settings.is_set(SECURITY_INTER_BROKER_PROTOCOL) or protocol in names
    return protocol if is_chosen or not names else names[0]


def _told(settings: Config) -> list[ListenerAddress]:
    """Return the advertised listeners, without those of controllers; if there are none, return all listeners."""
    told = [end for end in advertised(settings) if end.name not in controller_names(settings)]
    return told or listened(settings)


def _endpoints(settings: Config, addresses: list[ListenerAddress]) -> list[ListenerEndpoint]:
    protocols = security_protocols(settings)
    return [
        ListenerEndpoint(
            end.name,
            "localhost" if end.host == EVERY_INTERFACE else end.host,
            end.port,
            SecurityProtocol.__members__.get(protocols.get(end.name, end.name), SecurityProtocol.PLAINTEXT),
        )
        for end in addresses
    ]
