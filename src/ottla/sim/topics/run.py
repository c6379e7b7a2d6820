"""Simulations of one node whose topics change: with its default settings, and with records synced before their
acknowledgement.

| durability                    | crashes        | claims                                                              |
|-------------------------------|----------------|---------------------------------------------------------------------|
| page cache (Kafka's default)  | process        | nothing that was acknowledged is lost                               |
| page cache                    | process, power | a loss of power takes the end of a log, nothing below the recovery  |
|                               |                | point, and nothing else; without transactions, whose state is       |
|                               |                | another log that loses its own end                                  |
| ottla.fsync.before.ack        | process, power | nothing that was acknowledged is lost                               |
| page cache                    | none; clocks   | ... and no session and no transaction ends by itself                |
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from ottla.log.files.checkpoint import RECOVERY_POINTS, read_offsets
from ottla.log.files.names import DELETE_DIRECTORY
from ottla.sim.check import Guarantee
from ottla.sim.run import Simulation
from ottla.sim.scenario import POWER_FAULTS, Durability, Scenario, SimFault, scenario
from ottla.sim.topics.plan import SETTINGS, TopicsPlan, draw_topics
from ottla.sim.topics.survivors import Survivors
from ottla.sim.topics.workload import TopicWorkload

SEALED_SECONDS = 10.0  # a rolled segment is synced after so long, and a start need not check it


@dataclass(frozen=True, slots=True)
class TopicScenario(Scenario):
    """A scenario with its topics."""

    topics: TopicsPlan

    def lines(self) -> list[str]:
        return [*Scenario.lines(self), str(self.topics)]


def changing(seed: int) -> TopicScenario:
    rng = random.Random(f"changing {seed}")
    base = scenario(seed)
    durability = rng.choice((Durability.PAGE_CACHE, Durability.PAGE_CACHE, Durability.FSYNC_BEFORE_ACK))
    durable = durability is not Durability.PAGE_CACHE
    power = durable or rng.random() < 0.4
    undisturbed = not power and rng.random() < 0.25
    faults = {SimFault.CLOCK_JUMP: 1.0} if undisturbed else _faults(rng, power=power)
    at_risk = power and not durable
    topics = draw_topics(rng, transactions=not at_risk)
    if undisturbed:
        changes = tuple(each for each in topics.changes if each != "recreate") or ("policy",)
        protocol = rng.choice(("classic", "consumer"))
        topics = replace(topics, changes=changes, staying_members=2, protocol=protocol, undisturbed=True)
    made = replace(
        base,
        durability=durability,
        guarantee=Guarantee.AT_RISK if at_risk else Guarantee.SAFE,
        faults=faults,
        partitions=1,
        topic_configs={},
        writers=(),
        following_readers=0,
        jumping_readers=0,
        erasers=0,
        pause_between_faults_seconds=rng.uniform(0.5, 3.0),
        chaos_seconds=rng.uniform(18.0, 26.0) if undisturbed else rng.uniform(4.0, 12.0),
    )
    return TopicScenario(**{each.name: getattr(made, each.name) for each in fields(made)}, topics=topics)


def _faults(rng: random.Random, *, power: bool) -> dict[SimFault, float]:
    """Draw at least one fault that ends the node, and sometimes others."""
    crashes = [SimFault.KILL, SimFault.KILL_IN_WRITE, *(POWER_FAULTS if power else ())]
    others = [
        SimFault.RESTART,
        SimFault.PAUSE,
        SimFault.RESET,
        SimFault.CUT,
        SimFault.SLOW_NETWORK,
        SimFault.SLOW_DISK,
        SimFault.CLOCK_JUMP,
        SimFault.FULL_DISK,
        SimFault.FAILING_WRITES,
        SimFault.FAILING_SYNCS,
    ]
    chosen = {fault: rng.uniform(0.5, 1.5) for fault in rng.sample(crashes, rng.randint(1, len(crashes)))}
    return chosen | {fault: rng.uniform(0.3, 1.0) for fault in rng.sample(others, rng.randint(0, 2))}


class TopicSimulation(Simulation):
    """The simulation of one node."""

    scenario: TopicScenario

    def __init__(self, scenario: TopicScenario, tell: Callable[[str], None] | None = None) -> None:
        super().__init__(scenario, tell)
        self._workload = TopicWorkload(self.stage, scenario.topics, self.machines)
        self.workloads.append(self._workload)
        if scenario.faults.keys() & set(POWER_FAULTS):
            may_lose = scenario.guarantee is Guarantee.AT_RISK
            survivors = Survivors(self.machine, scenario.topics, self._workload.book, may_lose=may_lose)
            self.machine.on_crash = survivors.crashed
            self.loop.on_step = survivors.look

    def _limits(self) -> Mapping[str, object]:
        return self.scenario.topics.limits

    def _settings(self) -> dict[str, str]:
        durable = self.scenario.durability is not Durability.PAGE_CACHE
        return super()._settings() | SETTINGS | ({"ottla.fsync.before.ack": "true"} if durable else {})

    async def _look_again(self) -> None:
        await self.machine.wait_until_ready()
        await asyncio.sleep(SEALED_SECONDS)
        self._look_at_checkpoints()
        await super()._look_again()
        self._look_for_remains()

    def _look_for_remains(self) -> None:
        """Check that nothing is left of topics deleted before; the last start was seconds ago."""
        topics = tuple(f"{topic.name}-" for topic in self.scenario.topics.topics)
        for path, disk in self.machine.disks.items():
            for home in disk.list(""):
                if home.startswith(topics) and home.endswith(DELETE_DIRECTORY):
                    self.history.blame(f"{path}/{home} is left, with {disk.list(home)}")

    def _look_at_checkpoints(self) -> None:
        """Check, when all is quiet, that a start after a crash would read only the last segment of each log."""
        node = self.machine.node
        assert node is not None
        for directory in node.storage.directories:
            written = read_offsets(directory.disk, RECOVERY_POINTS)
            for name, partition in node.partitions.opened_in(directory):
                segments = partition.log.segments
                sealed = segments[-1].base_offset if len(segments) > 1 else 0
                if written.get(name, 0) < sealed:
                    self.history.blame(
                        f"{partition.name}: sealed up to {sealed} for {SEALED_SECONDS:.0f} s, but the recovery point on"
                        f" disk is {written.get(name)}"
                    )
