"""Tasks: background work of a node, which is cancelled at the latest when the node stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from ottla.server.loop.later import Later

log = logging.getLogger(__name__)


class Tasks:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run `work` until it ends or the node stops."""
        task: asyncio.Task[Any] = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def later(self, work: Coroutine[Any, Any, Any]) -> Later[Any]:
        """Run `work` and return a `Later` for its result, which fails if the work fails or the node stops."""
        later: Later[Any] = Later()

        def done(ended: asyncio.Task[Any]) -> None:
            if ended.cancelled() or ended.exception() is not None:
                later.fail()
            else:
                later.set(ended.result())

        self.spawn(work).add_done_callback(done)
        return later

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work in the background failed", exc_info=error)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
