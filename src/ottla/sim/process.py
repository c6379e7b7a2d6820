"""Client processes that come, go and crash, each on a host of its own; and the stage on which companies of them play.

A company is a part of a run beside the plain writers and readers: a consumer group, copiers, a share group. Its
supervisors belong to no host, so they survive whatever happens to their processes. What a process must remember over
its own crash (which names it used, what it was told) lives in the company, outside of the simulated world.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from ottla.sim.workload import Surroundings
from ottla.sim.world.loop import Host
from ottla.sim.world.net import SimNet

Run = Callable[[], Coroutine[Any, Any, None]]


class SimProcess:
    """A place where one client runs at a time; a crash leaves nothing of it."""

    def __init__(self, net: SimNet, name: str) -> None:
        self.name = name
        self.host = net.add_host(name)
        self._net = net

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._net.loop.task_of(self.host, work)

    def kill(self, *, power: bool) -> None:
        """At this very moment; with the power its kernel goes too, and nobody closes its connections."""
        self._net.loop.kill(self.host)
        if power:
            self._net.vanish(self.host)
        else:
            self._net.close_all(self.host)
        self.host = self._net.replace_host(self.host)


@dataclass(frozen=True, slots=True)
class Stage:
    """What a company needs of the simulation."""

    around: Surroundings
    net: SimNet
    disturbances: Callable[[], int]  # counts what no lock in the memory of a node outlives
    clients: list[Host]  # whom the network faults may strike
    stream: Callable[[str], random.Random]

    def process(self, name: str) -> SimProcess:
        process = SimProcess(self.net, name)
        self.clients.append(process.host)
        return process


class Company(Protocol):
    """A part of a run; see the module."""

    async def prepare(self) -> None:
        """Before anything goes wrong."""

    def start(self) -> None:
        """From here on everything may go wrong."""

    async def finish(self) -> None:
        """All faults are over and nobody writes any more: come to rest, and judge."""

    async def look(self) -> None:
        """All is quiet; the node may have been restarted since the last look, and nothing may have changed."""

    def facts(self) -> dict[str, int]:
        """How much happened."""


class Lives:
    """Keeps processes alive, more or less: each lives for a while, leaves or crashes, and comes back."""

    def __init__(self, stage: Stage, life_seconds: float, crash_rate: float) -> None:
        self._stage = stage
        self._life_seconds = life_seconds
        self._crash_rate = crash_rate
        self._supervisors: list[asyncio.Task[None]] = []
        self.crashes = 0
        self.departures = 0

    def add(self, name: str, run: Run, crashed: Callable[[], None] = lambda: None) -> None:
        """`crashed` is told, because the process itself has no time to tell anybody."""
        process, rng = self._stage.process(name), self._stage.stream(f"life of {name}")
        self._supervisors.append(self._stage.net.loop.create_task(self._supervise(process, run, crashed, rng)))

    async def end(self) -> None:
        """Everybody crashes, which is the rudest way to leave."""
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
