"""Client processes that start, stop and crash, each on its own host; and the stage on which workloads of them run.

A workload is a part of a run beside the plain writers and readers: a consumer group, copiers, a share group. Its
supervisors belong to no host, so they survive whatever happens to their processes. State that a process must keep over
its own crash (which names it used, what it was told) lives in the workload, outside the simulated world.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.sim.workload import Surroundings
from ottla.sim.world.loop import SimHost
from ottla.sim.world.net import SimNet

Run = Callable[[], Coroutine[Any, Any, None]]


class SimProcess:
    """A host on which one client runs at a time; a crash leaves nothing of it."""

    def __init__(self, net: SimNet, name: str) -> None:
        self.name = name
        self.host = net.add_host(name)
        self._net = net

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._net.loop.task_of(self.host, work)

    def kill(self, *, power: bool) -> None:
        """Kill the process at this very moment; with `power` its kernel dies, too, and its connections stay open at
        their peers.
        """
        self._net.loop.kill(self.host)
        if power:
            self._net.vanish(self.host)
        else:
            self._net.close_all(self.host)
        self.host = self._net.replace_host(self.host)


@dataclass(frozen=True, slots=True)
class WorkloadStage:
    """What a workload needs of the simulation."""

    around: Surroundings
    net: SimNet
    disturbances: Callable[[], int]  # counts events that clear the locks in a node's memory
    clients: list[SimHost]  # the hosts that network faults may affect
    stream: Callable[[str], random.Random]

    def process(self, name: str) -> SimProcess:
        process = SimProcess(self.net, name)
        self.clients.append(process.host)
        return process


class Workload(Protocol):
    """A part of a run; see the module."""

    async def prepare(self) -> None:
        """Prepare before any fault happens."""

    def start(self) -> None:
        """Start the processes; faults may happen from now on."""

    async def finish(self) -> None:
        """Finish when all faults are over and the writers have stopped, and check the claims."""

    async def look(self) -> None:
        """Check again when all is quiet; the node may have been restarted since the last look, and nothing may have
        changed.
        """

    def facts(self) -> dict[str, int]:
        """Return counts of what happened."""


class ProcessSupervisor:
    """Supervises processes: each lives for a while, leaves or crashes, and is started again."""

    def __init__(self, stage: WorkloadStage, life_seconds: float, crash_rate: float) -> None:
        self._stage = stage
        self._life_seconds = life_seconds
        self._crash_rate = crash_rate
        self._supervisors: list[asyncio.Task[None]] = []
        self.crashes = 0
        self.departures = 0

    def add(self, name: str, run: Run, crashed: Callable[[], None] = lambda: None) -> None:
        """Add a process; `crashed` is called after a crash, because the process itself cannot report it."""
        process, rng = self._stage.process(name), self._stage.stream(f"life of {name}")
        self._supervisors.append(self._stage.net.loop.create_task(self._supervise(process, run, crashed, rng)))

    async def end(self) -> None:
        """End all processes by a crash."""
        for supervisor in self._supervisors:
            supervisor.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)

    async def _supervise(self, process: SimProcess, run: Run, crashed: Callable[[], None], rng: random.Random) -> None:
        tell, history = self._stage.around.tell, self._stage.around.history
        await asyncio.sleep(rng.uniform(0, 2))
        try:
            while True:
                task = process.start(run())
                done, _ = await asyncio.wait([task], timeout=rng.expovariate(1 / self._life_seconds) + 0.5)
                if done and not task.cancelled() and task.exception() is not None:
                    history.blame(f"{process.name} failed: {task.exception()!r}")
                elif rng.random() < self._crash_rate:
                    tell(f"{process.name} crashes")
                    self.crashes += 1
                    process.kill(power=rng.random() < 0.5)
                    crashed()
                else:
                    tell(f"{process.name} leaves")
                    self.departures += 1
                    task.cancel()
                    await asyncio.wait([task])
                await asyncio.sleep(rng.uniform(0.1, 5.0))
        finally:
            process.kill(power=False)
            crashed()
