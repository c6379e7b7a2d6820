"""Work in a thread, started by a task that may be cancelled.

A thread cannot be interrupted: a task that is cancelled while its work runs ends only when the work has ended. So code
that waits for the task can rely on none of its work being under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def in_worker(
    loop: asyncio.AbstractEventLoop, executor: Executor | None, work: Callable[..., T], *args: object
) -> T:
    running = asyncio.ensure_future(loop.run_in_executor(executor, work, *args))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
