"""The faults of a run: what goes wrong, when, and for how long, all decided by the seed.

Each fault is a coroutine that breaks something and, unless it is permanent, repairs it again. Several can overlap. When
the chaos is over, `mend_all` repairs everything, and everything must work from then on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from ottla.sim import answers
from ottla.sim.cluster import SimMachine
from ottla.sim.scenario import Scenario, SimFault
from ottla.sim.world.disk import Crash, DiskFaults, SimDisk
from ottla.sim.world.links import LinkQuality
from ottla.sim.world.loop import SimHost
from ottla.sim.world.net import SimNet


class Chaos:
    """Runs the fault schedule of a scenario against the machines and the network."""

    def __init__(
        self,
        scenario: Scenario,
        net: SimNet,
        machines: list[SimMachine],
        clients: list[SimHost],
        rng: random.Random,
        tell: Callable[[str], None],
    ) -> None:
        self._scenario = scenario
        self._net = net
        self._machines = machines
        self._clients = clients
        self._rng = rng
        self._tell = tell
        self._good_quality = scenario.quality
        self._under_way: dict[asyncio.Task[None], None] = {}
        self.done: dict[SimFault, int] = {}
        self._actions: dict[SimFault, Callable[[SimMachine], Awaitable[None]]] = {
            SimFault.KILL: lambda machine: self._crash(machine, Crash.PROCESS),
            SimFault.KILL_IN_WRITE: lambda machine: self._crash_within(machine, Crash.PROCESS),
            SimFault.POWER_LOSS: lambda machine: self._crash(machine, Crash.POWER),
            SimFault.POWER_LOSS_IN_WRITE: lambda machine: self._crash_within(machine, Crash.POWER),
            SimFault.RESTART: self._restart,
            SimFault.PAUSE: self._pause,
            SimFault.RESET: self._reset,
            SimFault.CUT: self._cut,
            SimFault.SLOW_NETWORK: self._slow_network,
            SimFault.SLOW_DISK: self._slow_disk,
            SimFault.FULL_DISK: self._full_disk,
            SimFault.READ_ONLY_DISK: lambda machine: self._broken_disk(machine, read_only=True),
            SimFault.FAILING_WRITES: lambda machine: self._broken_disk(machine, write_error_rate=self._rate()),
            SimFault.FAILING_SYNCS: lambda machine: self._broken_disk(machine, sync_error_rate=self._rate()),
            SimFault.FAILING_READS: lambda machine: self._broken_disk(machine, read_error_rate=self._rate()),
            SimFault.CLOCK_JUMP: self._clock_jump,
            SimFault.BIT_ROT: self._bit_rot,
            SimFault.CLIENT_PAUSE: self._pause_client,
            SimFault.ANSWERS: self._answers,
        }

    async def run(self) -> None:
        """Cause faults until the chaos of the scenario is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._scenario.chaos_seconds
        kinds, weights = list(self._scenario.faults), list(self._scenario.faults.values())
        while True:
            await asyncio.sleep(self._rng.expovariate(1 / self._scenario.pause_between_faults_seconds))
            if loop.time() >= until:
                break
            fault = self._rng.choices(kinds, weights)[0]
            machine = self._rng.choice(self._machines)
            self._tell(f"fault: {fault.value} on {machine.name}")
            self.done[fault] = self.done.get(fault, 0) + 1
            task = loop.create_task(self._act(fault, machine))
            self._under_way[task] = None
            task.add_done_callback(self._under_way.pop)
        await self.mend_all()

    async def _act(self, fault: SimFault, machine: SimMachine) -> None:
        await self._actions[fault](machine)

    async def mend_all(self) -> None:
        for task in list(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._net.quality = self._good_quality
        self._net.heal()
        for machine in self._machines:
            for disk in machine.disks.values():
                self._mend(disk)
                disk.crash_never()
            machine.host.worker_delay_seconds = SimHost.WORKER_DELAY_SECONDS
            machine.clock.error_ms = 0
            machine.script.clear()
            machine.resume()
        self._tell("all faults are over")

    def _rate(self) -> float:
        return self._rng.choice((0.05, 0.5, 1.0))

    def _duration(self) -> float:
        return self._rng.choice((0.1, 1.0, 5.0)) * self._rng.uniform(0.5, 2.0)

    # -- crashes

    async def _crash(self, machine: SimMachine, kind: Crash) -> None:
        machine.crash(kind)

    async def _crash_within(self, machine: SimMachine, kind: Crash) -> None:
        operations = self._rng.choice((1, 3, 10, 40)) + self._rng.randint(0, 10)
        machine.crash_within(kind, self._disk_of(machine)[1], operations)

    async def _restart(self, machine: SimMachine) -> None:
        machine.restart()

    async def _pause(self, machine: SimMachine) -> None:
        host = machine.host
        machine.loop.pause(host)
        try:
            await asyncio.sleep(self._duration())
        finally:
            machine.loop.resume(host)

    async def _pause_client(self, machine: SimMachine) -> None:
        """Pause a client, sometimes so long that others consider it dead; it does not know that when it resumes."""
        host = self._net.hosts[self._rng.choice(self._clients).address]
        self._tell(f"{host.name} stands still")
        machine.loop.pause(host)
        try:
            await asyncio.sleep(self._rng.choice((1.0, 10.0)) * self._rng.uniform(0.5, 1.5))
        finally:
            machine.loop.resume(host)

    async def _clock_jump(self, machine: SimMachine) -> None:
        machine.clock.error_ms += self._rng.choice((-3_600_000, -1000, 1000, 3_600_000))

    # -- network

    async def _reset(self, machine: SimMachine) -> None:
        for socket in self._net.connections(machine.host):
            if self._rng.random() < 0.5:
                socket.break_connection()

    async def _cut(self, machine: SimMachine) -> None:
        for client in self._clients:
            if self._rng.random() < 0.6:
                ends = (client, machine.host) if self._rng.random() < 0.5 else (machine.host, client)
                self._net.cut(*ends, both_ways=self._rng.random() < 0.5)
        await asyncio.sleep(self._duration())
        self._net.heal()

    async def _slow_network(self, machine: SimMachine) -> None:
        good = self._good_quality
        self._net.quality = LinkQuality(
            latency_seconds=(good.latency_seconds[0], self._rng.choice((0.05, 0.5))),
            spike_rate=0.2,
            spike_seconds=self._rng.choice((0.5, 5.0)),
            bytes_per_second=self._rng.choice((1e4, 1e6)),
            short_rate=0.5,
            window_bytes=good.window_bytes,
        )
        await asyncio.sleep(self._duration())
        self._net.quality = good

    async def _answers(self, machine: SimMachine) -> None:
        """Make requests fail that operations need on their way: see `answers`."""
        failing = answers.strike(machine.script, self._rng)
        self._tell(f"{machine.name}: " + ", ".join(map(str, failing)))
        try:
            # Sometimes for longer than a client retries.
            await asyncio.sleep(self._rng.choice((0.3, 2.0, 25.0)) * self._rng.uniform(0.5, 1.5))
        finally:
            for fault in failing:
                fault.clear()

    # -- disks

    async def _slow_disk(self, machine: SimMachine) -> None:
        machine.host.worker_delay_seconds = (0.01, self._rng.choice((0.1, 1.0)))
        self._slow_writes(machine, True)
        await asyncio.sleep(self._duration())
        self._slow_writes(machine, False)
        machine.host.worker_delay_seconds = SimHost.WORKER_DELAY_SECONDS

    def _slow_writes(self, machine: SimMachine, slow: bool) -> None:
        for disk in machine.disks.values():
            disk.faults.slow_writes = slow

    async def _full_disk(self, machine: SimMachine) -> None:
        _, disk = self._disk_of(machine)
        await self._broken_disk(machine, capacity_bytes=disk.used_bytes + self._rng.choice((0, 1000, 20_000)))

    async def _broken_disk(self, machine: SimMachine, **wrong: float) -> None:
        path, disk = self._disk_of(machine)
        for name, value in wrong.items():
            setattr(disk.faults, name, value)
        await asyncio.sleep(self._duration())
        self._mend(machine.disks[path])

    async def _bit_rot(self, machine: SimMachine) -> None:
        """Flip a bit in a partition's file; a node with a damaged metadata journal would rightly refuse to start."""
        _, disk = self._disk_of(machine)
        paths = [path for path in disk.paths() if "/" in path and not path.startswith("__")]
        if paths:
            path = self._rng.choice(paths)
            self._tell(f"{path}: a bit flips in byte {disk.flip_bit(path)}")

    def _disk_of(self, machine: SimMachine) -> tuple[str, SimDisk]:
        return self._rng.choice(list(machine.disks.items()))

    def _mend(self, disk: SimDisk) -> None:
        disk.faults = DiskFaults(garbage_rate=self._scenario.garbage_rate)
