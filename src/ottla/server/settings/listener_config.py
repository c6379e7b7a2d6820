"""The settings of one listener: those with its prefix (`listener.name.internal.ssl.…`), else those of the broker."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import LISTENER_PREFIX, Config
from ottla.model.node_config import NodeConfig
from ottla.model.setting import Setting
from ottla.model.settings.sasl import SASL_JAAS_CONFIG
from ottla.model.settings.security import SSL_CLIENT_AUTH
from ottla.security.protocol import SecurityProtocol


def listener_config(node: NodeConfig, listener: str, mechanism: str | None = None) -> Config:
    """Return the settings of a listener; with `mechanism`, those with the prefix of that SASL mechanism come first."""
    prefix = f"{LISTENER_PREFIX}{listener.lower()}."
    prefixes = [prefix] if mechanism is None else [prefix, f"{prefix}{mechanism.lower()}."]
    config = node.broker
    for each in prefixes:
        own: dict[str, str] = {}
        for values in (node.static, node.dynamic_default, node.dynamic_broker):
            own |= {name.removeprefix(each): text for name, text in values.items() if name.startswith(each)}
        if own:
            config = Config(own, BROKER_SETTINGS, config)
    return config


def login_mechanism(node: NodeConfig, listener: str, setting: Setting[str]) -> str:
    """Return the SASL mechanism with which the node logs in to a listener of others; `setting` names it, for brokers or
    for controllers.
    """
    return listener_config(node, listener)[setting].upper()


def jaas_line(node: NodeConfig, listener: str, mechanism: str) -> str | None:
    """Return the JAAS line of a mechanism of a listener, by which clients log in there and the node logs in to others.

    As with Kafka, only the name with both prefixes counts (`listener.name.internal.plain.sasl.jaas.config`).
    """
    name = f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.{SASL_JAAS_CONFIG.name}"
    return next((text for values in _latest_first(node) if (text := values.get(name)) is not None), None)


def ignored_jaas_lines(node: NodeConfig, listener: str) -> list[str]:
    """Return the names of JAAS lines that are set for all mechanisms, and therefore have no effect on the listener."""
    names = f"{LISTENER_PREFIX}{listener.lower()}.{SASL_JAAS_CONFIG.name}", SASL_JAAS_CONFIG.name
    return [name for name in names if any(values.get(name) for values in _latest_first(node))]


def client_auth(node: NodeConfig, listener: str, protocol: SecurityProtocol) -> str:
    """Return whether clients of a listener must, may or need not show a certificate.

    As with Kafka, `ssl.client.auth` without the prefix of a listener is for the protocol SSL only, so that a listener
    with SASL_SSL does not ask for certificates besides passwords unless it is told to by name.
    """
    is_own = any(_client_auth_name(listener) in values for values in _latest_first(node))
    return listener_config(node, listener)[SSL_CLIENT_AUTH] if is_own or not protocol.has_sasl else "none"


def ignored_client_auth(node: NodeConfig, listener: str, protocol: SecurityProtocol) -> bool:
    """Return whether clients of a listener show no certificate although `ssl.client.auth` of the node asks for one."""
    asked = listener_config(node, listener)[SSL_CLIENT_AUTH]
    return protocol.has_tls and asked != "none" and client_auth(node, listener, protocol) != asked


def _client_auth_name(listener: str) -> str:
    return f"{LISTENER_PREFIX}{listener.lower()}.{SSL_CLIENT_AUTH.name}"


def _latest_first(node: NodeConfig) -> tuple[Mapping[str, str], ...]:
    return node.dynamic_broker, node.dynamic_default, node.static
