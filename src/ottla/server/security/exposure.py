"""Warnings at start: of listeners without authentication that other machines can reach, or that serve everybody as
User:ANONYMOUS beside access rules; and of settings for listeners that do not exist.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence

from ottla.model import limits
from ottla.model.config import LISTENER_PREFIX
from ottla.model.node_config import NodeConfig
from ottla.model.settings.authorizer import AUTHORIZER_CLASS_NAME
from ottla.model.settings.network import LISTENERS
from ottla.model.settings.security import DELEGATION_TOKEN_SECRET_KEY, SSL_CLIENT_AUTH
from ottla.security.host import is_loopback
from ottla.security.protocol import SecurityProtocol, authenticates
from ottla.server.settings.endpoints import controller_names
from ottla.server.settings.listener_config import ignored_client_auth, listener_config
from ottla.server.settings.listeners import ListenerAddress, security_protocols
from ottla.server.settings.metrics_listener import METRICS, has_secured_metrics

log = logging.getLogger(__name__)
_SECURE = "SASL_SSL, or SSL with ssl.client.auth=required (docs/security.md)"
_SECURE_AT_ONCE = "`ottla up --secure --data DIR` makes a cluster that has it"


def warn_of_exposure(node: NodeConfig, listeners: Sequence[ListenerAddress]) -> None:
    """Log one line for each listener that is open."""
    for line in exposures(node, listeners):
        log.warning("%s", line)
    secret = node.broker[DELEGATION_TOKEN_SECRET_KEY]
    if secret and len(secret) < limits.TOKEN_SECRET_CHARACTERS_MIN:
        log.warning(
            "%s has %d characters: whoever has a token can try out such keys, and with the right one make tokens of "
            "anybody. Take at least %d random characters",
            DELEGATION_TOKEN_SECRET_KEY.name,
            len(secret),
            limits.TOKEN_SECRET_CHARACTERS_MIN,
        )
    protocols = security_protocols(node.broker)
    for each in listeners:
        if ignored_client_auth(node, each.name, SecurityProtocol[protocols[each.name]]):
            log.warning(
                "%s is for listeners with the protocol SSL only, as in Kafka: listener %s asks for no certificates. To "
                "have it ask, set %s%s.%s",
                SSL_CLIENT_AUTH.name,
                each.name,
                LISTENER_PREFIX,
                each.name.lower(),
                SSL_CLIENT_AUTH.name,
            )
    known = {each.name.lower() for each in listeners} | {name.lower() for name in controller_names(node.broker)}
    known |= {METRICS.lower()} if has_secured_metrics(node.broker) else set()
    for stranger in strangers(node.static, known):
        log.warning(
            "settings begin with listener.name.%s., but no listener has this name (the listeners are: %s): they "
            "have no effect",
            stranger,
            ", ".join(sorted(known)),
        )


def strangers(names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names of listeners, in lower case, that have settings and do not exist, each once."""
    prefixed = (name.removeprefix(LISTENER_PREFIX) for name in names if name.startswith(LISTENER_PREFIX))
    return sorted({name.partition(".")[0] for name in prefixed} - set(known))


def exposures(node: NodeConfig, listeners: Sequence[ListenerAddress]) -> Iterator[str]:
    """Return a warning for each open listener, in one line."""
    protocols = security_protocols(node.broker)
    is_authorized = bool(node.broker[AUTHORIZER_CLASS_NAME])
    for each in listeners:
        protocol = SecurityProtocol[protocols[each.name]]
        if authenticates(protocol, listener_config(node, each.name)[SSL_CLIENT_AUTH]):
            continue
        where = f"listener {each.name} ({protocol.name}) at {each.host}:{each.port}"
        if not is_loopback(each.host):
            allowed = "is User:ANONYMOUS" if is_authorized else "may read, write and delete everything"
            yield (
                f"{where} does not authenticate, and is open to other machines: whoever reaches it {allowed}. "
                f"Use {_SECURE}: {_SECURE_AT_ONCE}. To serve this machine only, set "
                f"{LISTENERS.name}={each.name}://127.0.0.1:{each.port} (or --listen 127.0.0.1:{each.port})"
            )
        elif is_authorized and not protocol.has_tls:
            yield (
                f"{where} does not authenticate, but authorizer.class.name is set: whoever reaches it is "
                f"User:ANONYMOUS, whatever user it is meant to be. Take it out of {LISTENERS.name}, or use {_SECURE}"
            )
