"""PeriodicJobs: jobs of a node that are repeated; each starts a fixed interval after its last run ended.

A job that raises is logged and runs again after its next interval: it never takes the node down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None] | None]


class PeriodicJobs:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: list[asyncio.Task[None]] = []

    def every(self, name: str, interval_ms: float, job: Job) -> None:
        """Run `job` repeatedly, each time `interval_ms` after the last run ended."""

        async def forever() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                try:
                    waiting = job()
                    if waiting is not None:
                        await waiting
                except Exception:
                    log.exception("upkeep: %s failed", name)

        self._tasks.append(self._loop.create_task(forever()))

    async def stop(self) -> None:
        """Cancel all jobs and return when none of them runs any more, not even in a worker thread."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
