"""Runtime: the event loop, clocks, random generator and worker threads of one node.

The simulator gives each node a virtual clock, a seeded `rng` and workers that run on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from random import Random
from typing import TypeVar

from ottla.server.loop.clocks import Clocks
from ottla.server.loop.cpu_waits import CpuWaits
from ottla.server.loop.disk_threads import DiskThreads
from ottla.server.loop.slices import Slices
from ottla.server.loop.tasks import Tasks
from ottla.server.loop.workers import in_worker

T = TypeVar("T")


class Runtime:
    """`threads` makes an executor with a given number of threads; None means that `executor` does the work of disks
    too.
    """

    __slots__ = (
        "_threads",
        "clock_s",
        "clocks",
        "cpu_waits",
        "executor",
        "loop",
        "now_ms",
        "rng",
        "slices",
        "steady_ms",
        "tasks",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        now_ms: Callable[[], int],
        rng: Random,
        executor: Executor | None = None,
        threads: Callable[[int], Executor] | None = None,
        clock_s: Callable[[], float] = float,
        waited_s: Callable[[], float] = float,
    ) -> None:
        self.loop = loop
        self.clocks = Clocks(now_ms, loop)
        self.now_ms = now_ms  # the time of day, which may be set: for times that are stored
        self.steady_ms = self.clocks.steady_ms  # never set back: for durations and timeouts
        self.clock_s = clock_s  # advances within one turn of the event loop; constant in the simulator
        self.cpu_waits = CpuWaits(waited_s)  # of the loop's thread; none in the simulator
        self.rng = rng
        self.executor = executor
        self.slices = Slices(loop)
        self.tasks = Tasks(loop)
        self._threads = threads

    def in_worker(self, work: Callable[..., T], *args: object) -> Awaitable[T]:
        """Run `work` in a worker thread. A task that is cancelled meanwhile ends only when the work has ended."""
        return in_worker(self.loop, self.executor, work, *args)

    def disk_threads(self, count: int) -> DiskThreads:
        """`count` threads for each data directory, started when they are first needed."""
        return DiskThreads(self._threads, count, self.executor)
