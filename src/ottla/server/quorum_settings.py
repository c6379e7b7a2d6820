"""From the settings to what consensus needs: times, voters, where others are found."""

from __future__ import annotations

from ottla.model.config import Config
from ottla.raft.config import RaftConfig
from ottla.raft.voters import Endpoint, Voter, VoterSet
from ottla.server.endpoints import controller_endpoints

_CONTROLLER = "controller"
_DEFAULT_LISTENER = "CONTROLLER"


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
        voters.append(Voter(int(voter_id), endpoints=(Endpoint(listener, host.strip("[]"), int(port)),)))
    if not voters and is_controller(settings) and not settings.get("controller.quorum.bootstrap.servers"):
        voters.append(Voter(node_id, endpoints=own_endpoints(settings)))
    return VoterSet(voters)


def bootstrap_servers(settings: Config) -> list[Endpoint]:
    found = []
    for entry in settings.get("controller.quorum.bootstrap.servers"):
        host, _, port = entry.rpartition(":")
        found.append(Endpoint("", host.strip("[]"), int(port)))
    return found


def own_endpoints(settings: Config) -> tuple[Endpoint, ...]:
    """Where this node is reached as a voter; none if it is no controller."""
    if not is_controller(settings):
        return ()
    first = controller_listener(settings)
    found = [Endpoint(each.name, each.host, each.port) for each in controller_endpoints(settings)]
    return tuple(sorted(found, key=lambda each: each.name != first))
