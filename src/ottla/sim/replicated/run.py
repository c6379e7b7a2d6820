"""One simulation of a cluster from beginning to end; see `ottla.sim.run` for what all simulations share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from ottla.client.connection import Address
from ottla.cluster.entry import encode
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState
from ottla.sim.check import Guarantee, History
from ottla.sim.cluster import SimMachine
from ottla.sim.copying import CopyWorkload
from ottla.sim.grouping import GroupWorkload
from ottla.sim.replicated.chaos import ClusterChaos
from ottla.sim.replicated.members import Members
from ottla.sim.replicated.nodes import build
from ottla.sim.replicated.operators import Operators
from ottla.sim.replicated.power import Power
from ottla.sim.replicated.scenario import BROKER, COMBINED, CONTROLLER, ClusterScenario
from ottla.sim.replicated.watch import Watch
from ottla.sim.run import Simulation
from ottla.sim.scenario import DISK_FAULTS, Durability
from ottla.sim.shares.sharing import ShareWorkload
from ottla.sim.topics.workload import TopicWorkload
from ottla.sim.workload import create_topic, read_everything
from ottla.sim.world.disk import Crash
from ottla.sim.world.loop import SimHost, SimulationError

START_SECONDS_MAX = 60.0
QUIET_SECONDS_MAX = 60.0  # how long a mended cluster may take until every replica is in sync


class ClusterSimulation(Simulation):
    """The simulation of one cluster scenario."""

    scenario: ClusterScenario
    step_limit = 400_000

    def __init__(self, scenario: ClusterScenario, tell: Callable[[str], None] | None = None) -> None:
        super().__init__(scenario, tell)
        self._started = self.machines[: len(scenario.shape)]
        brokers = [machine for machine in self.machines if machine.settings["process.roles"] != CONTROLLER]
        self.power = Power(brokers, self._is_in_sync, limited=scenario.durability is Durability.PAGE_CACHE)
        topics = () if scenario.topics is None else [each.name for each in scenario.topics.topics]
        lossy = scenario.guarantee is Guarantee.ROTTEN
        self.watch = Watch(
            self.tell,
            self._blame,
            self.power.is_weak,
            lossy=lossy,
            rewritten=topics,
        )
        for machine in self.machines:
            self.watch.add(machine)
        self.loop.on_step = self._look
        self._supervisors: list[asyncio.Task[None]] = []
        self._add_companies(scenario)

    def _add_companies(self, scenario: ClusterScenario) -> None:
        plans, stage = scenario.workloads, self.stage
        self.workloads.extend(GroupWorkload(stage, plan) for plan in plans.groups)
        if plans.copying is not None:
            self.workloads.append(CopyWorkload(stage, plans.copying))
        if plans.sharing is not None:
            locks_last = not any(fault in scenario.faults for fault in DISK_FAULTS)
            self.workloads.append(ShareWorkload(stage, plans.sharing, locks_last=locks_last, cluster=True))
        if scenario.topics is not None:
            self.workloads.append(TopicWorkload(stage, scenario.topics, self._started, replicated=True))
        if scenario.operations or scenario.spares or scenario.changes:
            members = Members(
                stage, scenario, self.machines, self._start_machine, self._stop_machine, self._newest_state
            )
            self.workloads.append(Operators(stage, scenario.operations, scenario.changes, members))

    def _look(self, host: SimHost) -> None:
        self.watch.look(host)
        if self.history.violations:
            raise SimulationError("the first violation ends the run")

    def _blame(self, what: str) -> None:
        self.tell(f"WRONG: {what}")
        self.history.blame(f"at {self.loop.time():.4f} s: {what}")

    def _limits(self) -> Mapping[str, object]:
        return self.scenario.topics.limits if self.scenario.topics is not None else {}

    def _history(self) -> History:
        return History(self.scenario.guarantee, replicated=True)

    # -- machines

    def _machines(self) -> list[SimMachine]:
        return build(self.scenario, self.net, self._stream, self.tell)

    def _bootstrap(self) -> tuple[Address, ...]:
        shape = self.scenario.shape
        brokers = [machine for role, machine in zip(shape, self.machines, strict=False) if role != CONTROLLER]
        return tuple(machine.address for machine in brokers)

    def _start_machine(self, node_id: int) -> None:
        machine = self.machines[node_id - 1]
        self._started.append(machine)
        self._supervisors.append(self.loop.create_task(machine.supervise()))

    async def _stop_machine(self, node_id: int) -> None:
        """Stop a machine for good, or until it is started again."""
        machine = self.machines[node_id - 1]
        self._started.remove(machine)
        await machine.retire()

    # --- the real state, for the checkers

    def _newest_state(self) -> ClusterState | None:
        """Return the committed state of the node that has read most, including dead nodes."""
        states = [
            machine.incarnation.metadata
            for machine in self._started
            if machine.incarnation is not None and machine.incarnation.composed is not None
        ]
        return max(states, key=lambda each: each.end_offset).state if states else None

    def _is_in_sync(self, machine: SimMachine) -> bool:
        """Whether a machine is in the ISR of every partition that it holds, and is up."""
        state, node_id = self._newest_state(), int(machine.settings["node.id"])
        if machine not in self._started:
            return True  # it holds no replicas
        if state is None or not machine.running:
            return False
        return all(
            node_id in partition.isr
            for topic in state.topics.values()
            for partition in topic.partitions
            if node_id in partition.replicas
        )

    # -- the course of it

    async def _main(self) -> None:
        for number in range(1, len(self.scenario.shape) + 1):
            self._supervisors.append(self.loop.create_task(self.machines[number - 1].supervise()))
        await self._work()
        if self.scenario.clean_end:
            await self._retire()
            await asyncio.gather(*self._supervisors)
            self._verify_disks()

    async def _begin(self) -> None:
        async with asyncio.timeout(START_SECONDS_MAX):
            for machine in self._started:
                await machine.wait_until_ready()
        await self._as_client("admin", create_topic(self._around, self.scenario.topic_configs, self._stream("admin")))

    async def _run_chaos(self) -> None:
        chaos = ClusterChaos(
            self.scenario, self.net, self._started, self._clients, self._stream("chaos"), self.tell, self.power
        )
        await chaos.run()
        for machine in list(self._started):
            await machine.repair()
        self._chaos_done = {fault.value: count for fault, count in chaos.done.items()}

    async def _look_again(self) -> None:
        """Check that everything is there and all replicas are in sync; with `second_look` again after all nodes were
        killed at once.
        """
        await self._until_in_sync()
        await self._read_all()
        if self.scenario.second_look:
            for machine in self._started:
                machine.crash(Crash.PROCESS)
            await asyncio.sleep(2.5)
            await self._until_in_sync()
            await self._read_all()
        self._compare_states()

    async def _read_all(self) -> None:
        await self._as_client("last-reader", read_everything(self._around, self._stream("last reader")))
        for workload in self.workloads:
            await workload.look()

    async def _until_in_sync(self) -> None:
        for machine in self._started:
            await machine.wait_until_ready()
        if self.scenario.guarantee is Guarantee.ROTTEN:
            return
        until = self.loop.time() + QUIET_SECONDS_MAX
        while not all(self._is_in_sync(machine) for machine in self._started):
            if self.loop.time() > until:
                lagging = [machine.name for machine in self._started if not self._is_in_sync(machine)]
                self._blame(f"{', '.join(lagging)} not in sync although all faults are over")
                return
            await asyncio.sleep(0.2)

    def _compare_states(self) -> None:
        """Check that all nodes which have read the same offset have the same state."""
        known: dict[int, tuple[str, list[bytes]]] = {}
        for machine in self._started:
            node = machine.node
            if node is None:
                continue
            records = sorted(encode(entry) for entry in snapshot(node.metadata.state))
            name, others = known.setdefault(node.metadata.end_offset, (machine.name, records))
            if others != records:
                self._blame(f"{machine.name} and {name} know different clusters at offset {node.metadata.end_offset}")

    async def _retire(self) -> None:
        """Stop the brokers first: they hand over leadership as long as there is a quorum to decide it."""
        order = [BROKER, COMBINED, CONTROLLER]
        for machine in sorted(self._started, key=lambda each: order.index(each.settings["process.roles"])):
            await machine.retire()

    def _facts(self) -> dict[str, int]:
        return super()._facts() | self.watch.facts()
