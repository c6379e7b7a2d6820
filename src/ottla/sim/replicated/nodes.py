"""The machines of a simulated cluster: their settings, and formatting the first voters of a quorum."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from ottla.model.ids import random_uuid, uuid_text
from ottla.raft.voters import QuorumEndpoint, Voter, VoterSet
from ottla.server.storage.formatting import format_directories
from ottla.sim.cluster import CONTROLLER_PORT, EPOCH_MS, PORT, SimMachine
from ottla.sim.grouping import GROUP_SETTINGS
from ottla.sim.replicated.scenario import BROKER, CONTROLLER, IN_SYNC_MIN, REPLICAS, ClusterScenario, Voting
from ottla.sim.shares.sharing import SHARE_SETTINGS
from ottla.sim.transactional import TRANSACTION_SETTINGS
from ottla.sim.world.net import SimNet

LISTENER = "CONTROLLER"
REPLICATED = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": str(REPLICAS),
    "transaction.state.log.replication.factor": str(REPLICAS),
    "transaction.state.log.min.isr": str(IN_SYNC_MIN),
    "share.coordinator.state.topic.replication.factor": str(REPLICAS),
    "share.coordinator.state.topic.min.isr": str(IN_SYNC_MIN),
}


def build(
    scenario: ClusterScenario, net: SimNet, stream: Callable[[str], random.Random], tell: Callable[[str], None]
) -> list[SimMachine]:
    """Return all machines, including those that join later; node n is the n-th."""
    roles = [*scenario.shape, *scenario.spares]
    machines = []
    for number in range(1, len(roles) + 1):
        settings = {"log.dirs": ",".join(f"data-{each}" for each in range(scenario.log_dirs))}
        machines.append(SimMachine(f"node-{number}", net, settings, stream(f"machine {number}"), tell, Executor()))
    controllers = [number for number, role in enumerate(roles, 1) if role != BROKER]
    places = {number: f"{machines[number - 1].host.address}:{CONTROLLER_PORT}" for number in controllers}
    fixed = ",".join(f"{number}@{places[number]}" for number in controllers if number <= len(scenario.shape))
    for number, (role, machine) in enumerate(zip(roles, machines, strict=True), 1):
        machine.settings |= _settings(scenario, number, role, machine.host.address)
        if scenario.voting in (Voting.FIXED, Voting.UPGRADED) and (role == BROKER or number <= len(scenario.shape)):
            machine.settings["controller.quorum.voters"] = fixed
        else:
            machine.settings["controller.quorum.bootstrap.servers"] = ",".join(places.values())
    if scenario.voting in (Voting.ALL, Voting.FIRST):
        first = [number for number in controllers if number <= len(scenario.shape)]
        _format(machines, first[:1] if scenario.voting is Voting.FIRST else first, stream("format"))
    return machines


def _settings(scenario: ClusterScenario, number: int, role: str, address: str) -> dict[str, str]:
    listeners = []
    if role != CONTROLLER:
        listeners.append(f"PLAINTEXT://{address}:{PORT}")
    if role != BROKER:
        listeners.append(f"{LISTENER}://{address}:{CONTROLLER_PORT}")
    settings = GROUP_SETTINGS | TRANSACTION_SETTINGS | SHARE_SETTINGS | REPLICATED | scenario.settings
    if scenario.workloads.sharing is not None:
        every = scenario.workloads.sharing.snapshot_every
        settings["share.coordinator.snapshot.update.records.per.snapshot"] = str(every)
    return settings | {
        "process.roles": role,
        "node.id": str(number),
        "listeners": ",".join(listeners),
        "controller.listener.names": LISTENER,
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{LISTENER}:PLAINTEXT",
    }


def _format(machines: Sequence[SimMachine], voters: Sequence[int], rng: random.Random) -> None:
    """Format as `ottla format --initial-controllers` does; all other nodes learn the cluster id from these."""
    cluster_id = uuid_text(random_uuid(rng))
    first = VoterSet(
        Voter(number, random_uuid(rng), (QuorumEndpoint(LISTENER, machines[number - 1].host.address, CONTROLLER_PORT),))
        for number in voters
    )
    for number in voters:
        disks = list(machines[number - 1].disks.items())
        format_directories(
            disks, disks[0][0], node_id=number, cluster_id=cluster_id, voters=first, now_ms=EPOCH_MS, rng=rng
        )
        for _, disk in disks:
            disk.sync_all()
