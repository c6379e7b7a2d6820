"""From the settings to what consensus needs: times, voters, where others are found."""

from __future__ import annotations

from ottla.model.config import Config
from ottla.raft.config import RaftConfig
from ottla.raft.voters import Voter, VoterEndpoint, VoterSet
from ottla.server.settings.endpoints import controller_endpoints, controller_names
from ottla.server.settings.listeners import EVERY_INTERFACE, listened

_CONTROLLER = "controller"
_DEFAULT_LISTENER = "CONTROLLER"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def raft_config(settings: Config) -> RaftConfig:
    return RaftConfig(
        election_timeout_ms=settings.get("controller.quorum.election.timeout.ms"),
        election_backoff_max_ms=settings.get("controller.quorum.election.backoff.max.ms"),
        fetch_timeout_ms=settings.get("controller.quorum.fetch.timeout.ms"),
        request_timeout_ms=settings.get("controller.quorum.request.timeout.ms"),
        retry_backoff_ms=settings.get("controller.quorum.retry.backoff.ms"),
        fetch_max_bytes=settings.get("controller.quorum.fetch.max.bytes"),
        fetch_snapshot_max_bytes=settings.get("controller.quorum.fetch.snapshot.max.bytes"),
        auto_join=settings.get("controller.quorum.auto.join.enable") and is_controller(settings),
    )


def is_controller(settings: Config) -> bool:
    return _CONTROLLER in settings.get("process.roles")


def controller_listener(settings: Config) -> str:
    """The listener that controllers reach each other by: the first of their names."""
    if not settings.is_set("controller.listener.names"):
        return _DEFAULT_LISTENER
    return str(settings.get("controller.listener.names")[0]).upper()


def static_voters(settings: Config, node_id: int) -> VoterSet:
    """The voters of the configuration. A controller that was told of nobody is alone; whoever has bootstrap servers
    learns the voters from the journal."""
    listener = controller_listener(settings)
    voters = []
    for entry in settings.get("controller.quorum.voters"):
        voter_id, _, address = entry.partition("@")
        host, _, port = address.rpartition(":")
        voters.append(Voter(int(voter_id), endpoints=(VoterEndpoint(listener, host.strip("[]"), int(port)),)))
    if not voters and is_controller(settings) and not settings.get("controller.quorum.bootstrap.servers"):
        voters.append(Voter(node_id, endpoints=own_endpoints(settings)))
    return VoterSet(voters)


def bootstrap_servers(settings: Config) -> list[VoterEndpoint]:
    found = []
    for entry in settings.get("controller.quorum.bootstrap.servers"):
        host, _, port = entry.rpartition(":")
        found.append(VoterEndpoint("", host.strip("[]"), int(port)))
    return found


def is_only_bootstrap(settings: Config) -> bool:
    """Whether the controllers that this one is told of are all itself, as in Kafka's own server.properties: nobody
    else can begin the quorum. Names are compared and not looked up: one that may be somebody else's is."""
    servers = bootstrap_servers(settings)
    if not (servers and is_controller(settings)) or settings.get("controller.quorum.voters"):
        return False
    own = {(each.host.lower(), each.port) for each in own_endpoints(settings)}
    for each in listened(settings):
        if each.name in controller_names(settings):
            own.add((each.host.lower(), each.port))
            if each.host in (EVERY_INTERFACE, *_LOOPBACK):
                own.update((name, each.port) for name in _LOOPBACK)
    return all((server.host.lower(), server.port) in own for server in servers)


def own_endpoints(settings: Config) -> tuple[VoterEndpoint, ...]:
    """Where this node is reached as a voter; none if it is no controller."""
    if not is_controller(settings):
        return ()
    first = controller_listener(settings)
    found = [VoterEndpoint(each.name, each.host, each.port) for each in controller_endpoints(settings)]
    return tuple(sorted(found, key=lambda each: each.name != first))
