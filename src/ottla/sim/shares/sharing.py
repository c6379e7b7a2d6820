"""Share groups under chaos: members that accept, release, reject, forget and crash, and a last member that accepts all
records that are still available.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace

from ottla.client.admin import Admin
from ottla.model.resources import Resource, ResourceType
from ottla.sim.grouping import partition_bounds
from ottla.sim.process import ProcessSupervisor, WorkloadStage
from ottla.sim.shares.check import ShareBook
from ottla.sim.shares.client import ClientShareMember
from ottla.sim.shares.member import ACCEPT_ALL, AcknowledgementRates, SimShareMember
from ottla.sim.workload import PATIENCE_SECONDS

LOCK_SECONDS = 4.0
SHARE_SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_SECONDS * 1000)),
    "group.share.min.session.timeout.ms": "5000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.assignment.interval.ms": "0",
}


@dataclass(frozen=True, slots=True)
class SharePlan:
    name: str
    members: int
    clients: int  # how many additional members use the real `ShareConsumer`
    delivery_limit: int
    rates: AcknowledgementRates
    life_seconds: float
    crash_rate: float
    snapshot_every: int  # records of `__share_group_state` per snapshot

    def __str__(self) -> str:
        members = f"{self.members} + {self.clients} members"
        return f"share group {self.name}: {members}, at most {self.delivery_limit} deliveries"


def draw_sharing(rng: random.Random) -> SharePlan:
    accept = rng.uniform(0.4, 0.9)
    release = rng.uniform(0.0, 1.0 - accept)
    return SharePlan(
        name="queue",
        members=rng.randint(1, 3),
        clients=rng.choice((0, 0, 1, 2)),
        delivery_limit=rng.choice((2, 5, 10)),
        rates=AcknowledgementRates(accept, release, rng.uniform(0.0, 0.5) * (1.0 - accept - release)),
        life_seconds=rng.choice((4.0, 10.0, 30.0)),
        crash_rate=rng.choice((0.3, 0.7)),
        snapshot_every=rng.choice((1, 10, 500)),
    )


class ShareWorkload:
    """A share group that reads the topic of the run. In a cluster all members are real clients, which find the
    leaders.
    """

    def __init__(self, stage: WorkloadStage, plan: SharePlan, *, locks_last: bool, cluster: bool = False) -> None:
        self._stage = stage
        self._cluster = cluster
        self._plan = replace(plan, members=0, clients=plan.members + plan.clients) if cluster else plan
        self._book = ShareBook(
            plan.name,
            plan.delivery_limit,
            stage.around.history.blame,
            stage.net.loop.time,
            stage.disturbances,
            locks_last=locks_last,
        )
        self._supervisor = ProcessSupervisor(stage, plan.life_seconds, plan.crash_rate)

    async def prepare(self) -> None:
        async def configure() -> None:
            async with Admin(self._stage.around.options("admin", self._stage.stream("share settings"))) as admin:
                await admin.configs.set(
                    Resource(ResourceType.GROUP, self._plan.name),
                    {
                        "share.auto.offset.reset": "earliest",
                        "share.delivery.count.limit": str(self._plan.delivery_limit),
                    },
                )

        await self._stage.process("share-admin").start(configure())

    def start(self) -> None:
        for number in range(self._plan.members):
            name = f"{self._plan.name}-{number}"
            member = SimShareMember(self._stage.around, self._book, self._plan.rates, self._stage.stream(name))
            self._supervisor.add(name, member.run, member.crashed)
        for number in range(self._plan.clients):
            name = f"{self._plan.name}-client-{number}"
            client = ClientShareMember(self._stage.around, self._book, self._plan.rates, name, self._stage.stream(name))
            self._supervisor.add(name, client.run)

    async def finish(self) -> None:
        await self._supervisor.end()
        # Connections of machines without power stay open; their records are available when the locks end.
        await self._drain("last", LOCK_SECONDS + 4.0)
        for partition, (start, end) in (await partition_bounds(self._stage)).items():
            self._book.judge(partition, start, end)

    async def look(self) -> None:
        await self._drain("late", 2.0)

    async def _drain(self, name: str, quiet_seconds: float) -> None:
        around, rng = self._stage.around, self._stage.stream(f"{name} share")
        member: SimShareMember | ClientShareMember
        if self._cluster:
            member = ClientShareMember(around, self._book, ACCEPT_ALL, name, rng, quiet_seconds=quiet_seconds)
        else:
            member = SimShareMember(around, self._book, ACCEPT_ALL, rng, quiet_seconds=quiet_seconds)
        task = self._stage.process(f"{self._plan.name}-{name}").start(member.run())
        _, unfinished = await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        if unfinished:
            self._stage.around.history.blame(f"share group {self._plan.name}: the {name} member finds no end")
            task.cancel()
        for result in await asyncio.gather(task, return_exceptions=True):
            if isinstance(result, Exception):
                self._stage.around.history.blame(f"share group {self._plan.name}: a member failed: {result!r}")

    def facts(self) -> dict[str, int]:
        return {
            f"{self._plan.name} deliveries": self._book.deliveries,
            f"{self._plan.name} accepted": self._book.accepted,
            f"{self._plan.name} crashes": self._supervisor.crashes,
        }
