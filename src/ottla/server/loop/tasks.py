"""Tasks: background work of a node, which is cancelled at the latest when the node stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TypeVar

from ottla.server.loop.later import Later

log = logging.getLogger(__name__)

T = TypeVar("T")


class Tasks:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: dict[asyncio.Task[object], None] = {}

    def spawn(self, work: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """Run `work` until it ends or the node stops."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def later(self, work: Coroutine[object, None, T]) -> Later[T]:
        """Run `work` and return a `Later` for its result, which fails if the work fails or the node stops."""
        later: Later[T] = Later()

        def done(ended: asyncio.Task[T]) -> None:
            if ended.cancelled() or ended.exception() is not None:
                later.fail()
            else:
                later.set(ended.result())

        self.spawn(work).add_done_callback(done)
        return later

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work in the background failed", exc_info=error)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
