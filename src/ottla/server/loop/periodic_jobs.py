"""PeriodicJobs: what a part of a node does by the clock, again and again, each job some time after it last ended.

A job that fails is logged and comes back at its next turn: it never takes the node down.
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
        """Runs `job` again and again, `interval_ms` after it ended."""

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
        """Returns when nothing of it runs any more, in no thread."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
