"""The configuration of consensus, derived from the settings: timeouts, voters, addresses of other nodes."""

from __future__ import annotations

from ottla.model.config import Config
from ottla.model.settings.controller import (
    CONTROLLER_LISTENER_NAMES,
    CONTROLLER_QUORUM_AUTO_JOIN_ENABLE,
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS,
    CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS,
    CONTROLLER_QUORUM_FETCH_MAX_BYTES,
    CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES,
    CONTROLLER_QUORUM_FETCH_TIMEOUT_MS,
    CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS,
    CONTROLLER_QUORUM_RETRY_BACKOFF_MS,
    CONTROLLER_QUORUM_VOTERS,
)
from ottla.model.settings.node import PROCESS_ROLES
from ottla.raft.config import RaftConfig
from ottla.raft.voters import QuorumEndpoint, Voter, VoterSet
from ottla.server.settings.endpoints import controller_endpoints, controller_names
from ottla.server.settings.listeners import EVERY_INTERFACE, listened

_CONTROLLER = "controller"
_DEFAULT_LISTENER = "CONTROLLER"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def raft_config(settings: Config) -> RaftConfig:
    return RaftConfig(
        election_timeout_ms=settings[CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS],
        election_backoff_max_ms=settings[CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS],
        fetch_timeout_ms=settings[CONTROLLER_QUORUM_FETCH_TIMEOUT_MS],
        request_timeout_ms=settings[CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS],
        retry_backoff_ms=settings[CONTROLLER_QUORUM_RETRY_BACKOFF_MS],
        fetch_max_bytes=settings[CONTROLLER_QUORUM_FETCH_MAX_BYTES],
        fetch_snapshot_max_bytes=settings[CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES],
        auto_join=settings[CONTROLLER_QUORUM_AUTO_JOIN_ENABLE] and is_controller(settings),
    )


def is_controller(settings: Config) -> bool:
    return _CONTROLLER in settings[PROCESS_ROLES]


def controller_listener(settings: Config) -> str:
    """Return the listener by which controllers reach each other: the first of controller.listener.names."""
    if not settings.is_set(CONTROLLER_LISTENER_NAMES):
        return _DEFAULT_LISTENER
    return str(settings[CONTROLLER_LISTENER_NAMES][0]).upper()


def static_voters(settings: Config, node_id: int) -> VoterSet:
    """Return the voters of the configuration. A controller without voters and bootstrap servers is the sole voter; with
    bootstrap servers, the voters are learned from the journal.
    """
    listener = controller_listener(settings)
    voters = []
    for entry in settings[CONTROLLER_QUORUM_VOTERS]:
        voter_id, _, address = entry.partition("@")
        host, _, port = address.rpartition(":")
        voters.append(Voter(int(voter_id), endpoints=(QuorumEndpoint(listener, host.strip("[]"), int(port)),)))
    if not voters and is_controller(settings) and not settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]:
        voters.append(Voter(node_id, endpoints=own_endpoints(settings)))
    return VoterSet(voters)


def bootstrap_servers(settings: Config) -> list[QuorumEndpoint]:
    found = []
    for entry in settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS]:
        host, _, port = entry.rpartition(":")
        found.append(QuorumEndpoint("", host.strip("[]"), int(port)))
    return found


def is_only_bootstrap(settings: Config) -> bool:
    """Return whether all bootstrap servers are this controller itself, as in Kafka's own server.properties: then no
    other node can begin the quorum.

    Host names are compared and not looked up: a name that may belong to another node is taken as another node.
    """
    servers = bootstrap_servers(settings)
    if not (servers and is_controller(settings)) or settings[CONTROLLER_QUORUM_VOTERS]:
        return False
    own = {(each.host.lower(), each.port) for each in own_endpoints(settings)}
    for each in listened(settings):
        if each.name in controller_names(settings):
            own.add((each.host.lower(), each.port))
            if each.host in (EVERY_INTERFACE, *_LOOPBACK):
                own.update((name, each.port) for name in _LOOPBACK)
    return all((server.host.lower(), server.port) in own for server in servers)


def own_endpoints(settings: Config) -> tuple[QuorumEndpoint, ...]:
    """Return this node's endpoints as a voter; none if it is no controller."""
    if not is_controller(settings):
        return ()
    first = controller_listener(settings)
    found = [QuorumEndpoint(each.name, each.host, each.port) for each in controller_endpoints(settings)]
    return tuple(sorted(found, key=lambda each: each.name != first))
