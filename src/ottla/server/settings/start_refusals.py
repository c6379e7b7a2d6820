"""Configurations with which a node must not start: contradictory settings, and features that are not implemented yet.

A listener that was configured for TLS or SASL must never be served in plain text, and a node that other nodes cannot
find, or that cannot find them, cannot be part of a cluster. All problems are reported at once, so that the operator can
fix the file in one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.controller import CONTROLLER_QUORUM_BOOTSTRAP_SERVERS, CONTROLLER_QUORUM_VOTERS
from ottla.model.settings.network import INTER_BROKER_LISTENER_NAME, SECURITY_INTER_BROKER_PROTOCOL
from ottla.model.settings.node import PROCESS_ROLES
from ottla.model.start_checks import start_problems
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import broker_endpoints, controller_names, inter_broker_listener
from ottla.server.settings.listeners import ListenerAddress, advertised
from ottla.server.settings.metrics_listener import metrics_problems
from ottla.server.settings.otel_place import otel_problems
from ottla.server.settings.security_refusals import security_problems


def check_start(configs: Configs, endpoints: Sequence[ListenerAddress]) -> None:
    """Raise INVALID_CONFIG with all problems of the configuration."""
    settings = configs.broker
    advertised(settings)  # raises if the value cannot be parsed
    problems = [
        *start_problems(configs.node),
        *security_problems(configs.node, endpoints, is_alone=not _has_others(settings)),
        *_listeners(settings, endpoints),
        *_quorum(settings, configs.node_id),
        *metrics_problems(settings, endpoints),
        *otel_problems(settings),
    ]
    if problems:
        raise ApiError(ErrorCode.INVALID_CONFIG, "; ".join(problems))


def _listeners(settings: Config, endpoints: Sequence[ListenerAddress]) -> Iterator[str]:
    roles = set(settings[PROCESS_ROLES])
    theirs = controller_names(settings)
    names = [endpoint.name for endpoint in endpoints]
    shared = [name for name in names if name in theirs]
    if roles == {"controller"} and len(shared) < len(names):
        yield "listeners may only have names of controller.listener.names when process.roles is controller"
    if roles == {"broker"} and shared:
        yield "listeners must not have names of controller.listener.names when process.roles is broker"
    if "controller" in roles and not shared and _has_others(settings):
        yield "controller.listener.names must have a name that is among the listeners"
    if "broker" in roles:
        told = [endpoint.name for endpoint in broker_endpoints(settings)]
        if not told:
            yield "there must be a listener for clients among the listeners"
        elif inter_broker_listener(settings) not in told:
            chosen = inter_broker_listener(settings)
            yield (
                "inter.broker.listener.name must be a listener name that is defined in advertised.listeners, which are "
                f"{', '.join(told)}: there is no {chosen} "
                f"({INTER_BROKER_LISTENER_NAME.name} or {SECURITY_INTER_BROKER_PROTOCOL.name})"
            )


def _quorum(settings: Config, node_id: int) -> Iterator[str]:
    roles = set(settings[PROCESS_ROLES])
    voters = settings[CONTROLLER_QUORUM_VOTERS]
    is_voter = any(voter.partition("@")[0] == str(node_id) for voter in voters)
    if "controller" in roles and voters and not is_voter:
        yield f"process.roles has controller, so node {node_id} must be among controller.quorum.voters"
    if "controller" not in roles:
        if is_voter:
            yield f"process.roles is only broker, so node {node_id} must not be among controller.quorum.voters"
        if not voters and not settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]:
            yield "controller.quorum.bootstrap.servers or controller.quorum.voters must say where the controllers are"


def _has_others(settings: Config) -> bool:
    """Return whether the settings name other nodes."""
    bootstrap = settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]
    return len(settings[CONTROLLER_QUORUM_VOTERS]) > 1 or bool(bootstrap)
