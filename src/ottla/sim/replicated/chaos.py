"""The faults of a cluster: those of a single node, on any node, and those between nodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

from ottla.sim.cluster import SimMachine
from ottla.sim.faults import Chaos
from ottla.sim.replicated import rot
from ottla.sim.replicated.power import Power
from ottla.sim.scenario import Scenario, SimFault
from ottla.sim.world.disk import Crash
from ottla.sim.world.loop import SimHost
from ottla.sim.world.net import SimNet


class ClusterChaos(Chaos):
    """`Chaos` for a cluster, with a `Power` that decides which nodes may lose power."""

    def __init__(
        self,
        scenario: Scenario,
        net: SimNet,
        machines: list[SimMachine],
        clients: list[SimHost],
        rng: random.Random,
        tell: Callable[[str], None],
        power: Power,
    ) -> None:
        super().__init__(scenario, net, machines, clients, rng, tell)
        self._power = power
        self._actions |= {
            SimFault.KILL_SEVERAL: lambda _: self._crash_several(Crash.PROCESS),
            SimFault.POWER_LOSS_OF_SEVERAL: lambda _: self._crash_several(Crash.POWER),
            SimFault.ISOLATE: self._isolate,
            SimFault.SPLIT: self._split,
            SimFault.ONE_WAY: self._one_way,
            SimFault.FAR_NODE: self._far_node,
            SimFault.RESETS: self._resets,
            SimFault.METADATA_ROT: self._metadata_rot,
            SimFault.LATE_SYNC: self._late_sync,
        }

    def _duration(self) -> float:
        return self._rng.choice((0.1, 0.4, 1.0, 2.5)) * self._rng.uniform(0.5, 1.5)

    # -- crashes

    async def _crash(self, machine: SimMachine, kind: Crash) -> None:
        if self._power.may_crash(machine, kind):
            machine.crash(kind)
        else:
            machine.restart()

    async def _crash_within(self, machine: SimMachine, kind: Crash) -> None:
        if not self._power.may_crash(machine, kind):
            return
        operations = self._rng.choice((1, 3, 10)) + self._rng.randint(0, 10)
        _, disk = self._disk_of(machine)
        self._power.arm(machine)
        machine.crash_within(kind, disk, operations)
        try:
            await asyncio.sleep(2.0)
        finally:
            disk.crash_never()
            self._power.disarm(machine)

    async def _crash_several(self, kind: Crash) -> None:
        at_once = self._rng.random() < 0.5
        for each in self._rng.sample(self._machines, self._rng.randint(2, len(self._machines))):
            await self._crash(each, kind)
            if not at_once:
                await asyncio.sleep(self._rng.uniform(0, 0.2))

    async def _metadata_rot(self, machine: SimMachine) -> None:
        """Damage the metadata of a stopped node. For its partitions this counts as a disk that may be lost."""
        if not machine.running or not self._power.may_crash(machine, Crash.POWER):
            return
        if self._rng.random() < 0.7:
            machine.crash(Crash.PROCESS)
        else:
            machine.restart()
            await machine.wait_until_ended()
        if rot.may_strike(machine, self._machines):
            self._tell(f"{machine.name}: a bit flips in {rot.strike(machine, self._rng)}")

    async def _late_sync(self, machine: SimMachine) -> None:
        """Delay the syncs of a leader (if there is one) until others lead and it was truncated and fetched other
        records.
        """
        leaders = [each for each in self._machines if each.running and _leads(each)]
        machine = self._rng.choice(leaders) if leaders else machine
        host = machine.host
        seconds = self._rng.uniform(0.5, 4.0)
        slow = (0.05, self._rng.choice((0.3, 1.0, 3.0)))
        slowly_from = seconds - self._rng.uniform(0.05, 0.5)
        timer = asyncio.get_running_loop().call_later(slowly_from, setattr, host, "worker_delay_seconds", slow)
        links = [(host, each.host) for each in self._machines if each is not machine]
        try:
            await self._cut_for_a_while(links, both_ways=True, seconds=seconds)
            await asyncio.sleep(self._rng.choice((0.1, 1.0, 4.0)) * self._rng.uniform(0.5, 1.5))
            if machine.host is host:
                await self._crash(machine, Crash.POWER)
        finally:
            timer.cancel()  # the chaos may end before it was due
            # that of the next incarnation, if this one died
            machine.host.worker_delay_seconds = SimHost.WORKER_DELAY_SECONDS

    # -- network

    async def _isolate(self, machine: SimMachine) -> None:
        """Isolate a node from all others, and sometimes from the clients; the cut may be in one direction only."""
        others: list[SimHost] = [each.host for each in self._machines if each is not machine]
        if self._rng.random() < 0.5:
            others += self._clients
        way = self._rng.choice(("both", "both", "in", "out"))
        await self._cut_for_a_while(
            [(other, machine.host) if way == "in" else (machine.host, other) for other in others],
            both_ways=way == "both",
        )

    async def _split(self, machine: SimMachine) -> None:
        """Split the nodes into two parts of any size; each client is in one part, or reaches both."""
        one = self._rng.sample(self._machines, self._rng.randint(1, len(self._machines) - 1))
        links = [(a.host, b.host) for a in one for b in self._machines if b not in one]
        for client in self._clients:
            side = self._rng.randrange(3)
            links += [(client, each.host) for each in self._machines if (each in one) == bool(side) and side < 2]
        await self._cut_for_a_while(links, both_ways=self._rng.random() < 0.7)

    async def _one_way(self, machine: SimMachine) -> None:
        other = self._rng.choice([each for each in self._machines if each is not machine])
        await self._cut_for_a_while([(machine.host, other.host)], both_ways=False)

    async def _cut(self, machine: SimMachine) -> None:
        """Cut connections between some clients and a node; the nodes still reach each other."""
        links = [(client, machine.host) for client in self._clients if self._rng.random() < 0.6]
        if self._rng.random() < 0.5:
            links = [(host, client) for client, host in links]
        await self._cut_for_a_while(links, both_ways=self._rng.random() < 0.5)

    async def _cut_for_a_while(
        self, links: list[tuple[SimHost, SimHost]], *, both_ways: bool, seconds: float | None = None
    ) -> None:
        for link in links:
            self._net.cut(*link, both_ways=both_ways)
        await asyncio.sleep(self._duration() if seconds is None else seconds)
        for link in links:
            self._net.join(*link, both_ways=both_ways)

    async def _far_node(self, machine: SimMachine) -> None:
        self._net.delay(machine.host, self._rng.choice((0.05, 0.3, 1.0)))
        await asyncio.sleep(self._duration())
        self._net.delay(machine.host, 0.0)

    async def _resets(self, machine: SimMachine) -> None:
        self._net.quality = replace(self._net.quality, reset_rate=self._rng.choice((0.005, 0.05)))
        await asyncio.sleep(self._duration())
        self._net.quality = self._good_quality


def _leads(machine: SimMachine) -> bool:
    node = machine.node
    return node is not None and any(
        each.is_leader and not each.topic.startswith("__") for each in node.partitions.opened()
    )
