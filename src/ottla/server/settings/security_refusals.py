"""Security settings with which a node must not start, because it would serve less, or other, than they say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ottla.model.config import Config
from ottla.model.node_config import NodeConfig
from ottla.model.settings.authorizer import (
    AUTHORIZER_CLASS_NAME,
    EARLY_START_LISTENERS,
    STANDARD_AUTHORIZER,
    SUPER_USERS,
)
from ottla.model.settings.controller import SASL_MECHANISM_CONTROLLER_PROTOCOL
from ottla.model.settings.node import PROCESS_ROLES
from ottla.model.settings.own import OTTLA_AUDIT_FILE, OTTLA_AUDIT_TO
from ottla.model.settings.sasl import SASL_ENABLED_MECHANISMS, SASL_MECHANISM_INTER_BROKER_PROTOCOL
from ottla.security.protocol import SecurityProtocol
from ottla.security.super_users import super_users
from ottla.server.settings.endpoints import controller_names, inter_broker_listener
from ottla.server.settings.foreign_classes import foreign_classes
from ottla.server.settings.listener_config import listener_config, login_mechanism
from ottla.server.settings.listeners import ListenerAddress, security_protocols


def security_problems(node: NodeConfig, endpoints: Sequence[ListenerAddress], *, is_alone: bool) -> Iterator[str]:
    """Yield what is wrong, one line each. `is_alone`: the settings name no other node."""
    settings = node.broker
    yield from _protocols(settings, endpoints)
    yield from foreign_classes(node.static)
    yield from _authorizer(settings)
    yield from _early(settings, endpoints)
    yield from _audit(settings)
    if not is_alone:
        yield from _controllers(node)
    if "broker" in settings[PROCESS_ROLES]:
        yield from _between_brokers(node, is_alone=is_alone)


def _protocols(settings: Config, endpoints: Sequence[ListenerAddress]) -> Iterator[str]:
    protocols = security_protocols(settings)
    for endpoint in endpoints:
        protocol = protocols.get(endpoint.name)
        if protocol is None:
            yield f"listener {endpoint.name} is not in listener.security.protocol.map"
        elif protocol not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol.__members__)
            yield f"listener {endpoint.name} has the security protocol {protocol}, which is none of {known}"


def _authorizer(settings: Config) -> Iterator[str]:
    name = settings[AUTHORIZER_CLASS_NAME]
    if name and name != STANDARD_AUTHORIZER:
        yield f"authorizer.class.name is {name}, but the only authorizer here is {STANDARD_AUTHORIZER}"
    try:
        super_users(settings[SUPER_USERS])
    except ValueError as error:
        yield f"super.users cannot be read: {error}"


def _early(settings: Config, endpoints: Sequence[ListenerAddress]) -> Iterator[str]:
    """As with Kafka the names must be written as those of listeners are kept, in upper case."""
    known = {endpoint.name for endpoint in endpoints}
    for name in settings[EARLY_START_LISTENERS] or ():
        if name not in known:
            yield (
                f"early.start.listeners contains listener {name}, but this is not contained in listeners or "
                "controller.listener.names"
            )


def _audit(settings: Config) -> Iterator[str]:
    if "file" not in settings[OTTLA_AUDIT_TO]:
        return
    problem = audit_file_problem(settings)
    if problem is not None:
        yield problem


def audit_file_problem(settings: Config) -> str | None:
    """Return why the file of the audit log cannot be written."""
    path = settings[OTTLA_AUDIT_FILE]
    if not path:
        return "ottla.audit.to has file, so ottla.audit.file must name the file"
    directory = os.path.dirname(path) or "."
    if os.path.isdir(path):
        return f"ottla.audit.file cannot be written: {path} is a directory"
    if not os.path.isdir(directory):
        return f"ottla.audit.file cannot be written: there is no directory {directory}"
    if not os.access(directory, os.W_OK | os.X_OK) or (os.path.exists(path) and not os.access(path, os.W_OK)):
        return f"ottla.audit.file cannot be written: this user may not write {path}"
    return None


def _controllers(node: NodeConfig) -> Iterator[str]:
    """SCRAM users are in the metadata, which controllers have only when they have elected a leader: as with Kafka,
    they cannot log in to each other with them.
    """
    names = controller_names(node.broker)
    if not names:
        return
    protocol = security_protocols(node.broker).get(names[0])
    mechanism = login_mechanism(node, names[0], SASL_MECHANISM_CONTROLLER_PROTOCOL)
    if protocol in ("SASL_PLAINTEXT", "SASL_SSL") and mechanism.startswith("SCRAM-"):
        yield (
            f"sasl.mechanism.controller.protocol is {mechanism}, but controllers need their quorum before they know "
            "SCRAM users: set it to PLAIN, or give the controllers' listener the protocol SSL"
        )


def _between_brokers(node: NodeConfig, *, is_alone: bool) -> Iterator[str]:
    """As with Kafka, brokers log in to each other with a mechanism that their listener has. A node that is alone logs
    in nowhere, so there the default of the setting is no mistake.
    """
    listener = inter_broker_listener(node.broker)
    protocol = security_protocols(node.broker).get(listener)
    mechanism = login_mechanism(node, listener, SASL_MECHANISM_INTER_BROKER_PROTOCOL)
    if protocol not in ("SASL_PLAINTEXT", "SASL_SSL"):
        return
    if is_alone and not listener_config(node, listener).is_set(SASL_MECHANISM_INTER_BROKER_PROTOCOL):
        return
    enabled = [each.upper() for each in listener_config(node, listener)[SASL_ENABLED_MECHANISMS]]
    if enabled and mechanism not in enabled:
        yield (
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for "
            f"inter-broker communication: listener {listener} has {', '.join(enabled)}, and not {mechanism}"
        )
