"""The security of this node's connections to other nodes: that of the listener which they lead to.

Between brokers it is the inter-broker listener, towards controllers the first of `controller.listener.names`. The node
shows the certificate of its own listener of that name, and logs in as the JAAS configuration of that listener says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.setting import Setting, render
from ottla.model.settings.controller import SASL_MECHANISM_CONTROLLER_PROTOCOL
from ottla.model.settings.sasl import (
    SASL_CLIENT_CALLBACK_HANDLER_CLASS,
    SASL_JAAS_CONFIG,
    SASL_KERBEROS_SERVICE_NAME,
    SASL_LOGIN_CALLBACK_HANDLER_CLASS,
    SASL_LOGIN_CLASS,
    SASL_LOGIN_CONNECT_TIMEOUT_MS,
    SASL_LOGIN_READ_TIMEOUT_MS,
    SASL_LOGIN_RETRY_BACKOFF_MAX_MS,
    SASL_LOGIN_RETRY_BACKOFF_MS,
    SASL_MECHANISM_INTER_BROKER_PROTOCOL,
    SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID,
    SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET,
    SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS,
    SASL_OAUTHBEARER_SCOPE,
    SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL,
)
from ottla.security.protocol import SecurityProtocol
from ottla.server.settings.endpoints import controller_names, inter_broker_listener
from ottla.server.settings.listener_config import jaas_line, listener_config, login_mechanism
from ottla.server.settings.listeners import security_protocols

if TYPE_CHECKING:
    from ottla.client.security.security import Security

# The settings that a node logs in with. The client refuses classes that are not Kafka's.
_LOGIN_SETTINGS: Final[tuple[Setting[str | None], ...]] = (
    SASL_CLIENT_CALLBACK_HANDLER_CLASS,
    SASL_KERBEROS_SERVICE_NAME,
    SASL_LOGIN_CALLBACK_HANDLER_CLASS,
    SASL_LOGIN_CLASS,
    SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID,
    SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET,
    SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS,
    SASL_OAUTHBEARER_SCOPE,
    SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL,
)
# How long it waits for a token; those that are not set are the client's own.
_PATIENCE_SETTINGS: Final[tuple[Setting[int] | Setting[int | None], ...]] = (
    SASL_LOGIN_CONNECT_TIMEOUT_MS,
    SASL_LOGIN_READ_TIMEOUT_MS,
    SASL_LOGIN_RETRY_BACKOFF_MAX_MS,
    SASL_LOGIN_RETRY_BACKOFF_MS,
)


def towards_brokers(node: NodeConfig) -> Security | None:
    """Return the security of connections to other brokers; None: plain text."""
    return _towards(node, inter_broker_listener(node.broker), SASL_MECHANISM_INTER_BROKER_PROTOCOL)


def towards_controllers(node: NodeConfig) -> Security | None:
    """Return the security of connections to controllers; None: plain text."""
    names = controller_names(node.broker)
    return _towards(node, names[0], SASL_MECHANISM_CONTROLLER_PROTOCOL) if names else None


def _towards(node: NodeConfig, listener: str, mechanism: Setting[str]) -> Security | None:
    name = security_protocols(node.broker).get(listener)
    protocol = SecurityProtocol.__members__.get(name or "", SecurityProtocol.PLAINTEXT)
    if protocol is SecurityProtocol.PLAINTEXT:
        return None
    from ottla.client.security.security import Security
    from ottla.server.security.listener_tls import ssl_values

    values = {"security.protocol": protocol.name}
    if protocol.has_tls:
        values |= ssl_values(listener_config(node, listener))
    if protocol.has_sasl:
        chosen = login_mechanism(node, listener, mechanism)
        values["sasl.mechanism"] = chosen
        values |= _login_values(listener_config(node, listener, chosen))
        line = jaas_line(node, listener, chosen)
        if line:
            values[SASL_JAAS_CONFIG.name] = line
    try:
        return Security.of(values)
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"connections to listener {listener}: {error}") from None


def _login_values(config: Config) -> dict[str, str]:
    texts = {each.name: render(config[each]) for each in _LOGIN_SETTINGS}
    texts |= {each.name: render(config[each]) for each in _PATIENCE_SETTINGS if config.is_set(each)}
    return {name: text for name, text in texts.items() if text}
