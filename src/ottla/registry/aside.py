"""Work on schemas beside the event loop: parsing and comparing what strangers send may take seconds.

Rules:
- Work in a thread reads the state, which only the loop changes: so the state stands still while anything is under way.
  A change waits for what has begun, and what has not begun waits for the change.
- Work begins when a thread is free for it, not before. So a change waits for as many pieces of work as there are
  threads (`limits.SCHEMA_THREADS_MAX`), however many wait their turn.
- What waits has its turn in the order in which it came.
- What is answered without parsing anything is answered in the loop and waits for neither.
- A request that is given up does not end its thread: the state stands still until that has ended by itself. How long
  that may take is bounded by the bounds of the work (`model/limits/`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ottla.model import limits

T = TypeVar("T")


class Aside:
    """Threads, and the state's turns."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(limits.SCHEMA_THREADS_MAX, thread_name_prefix="schemas")
        self._free = asyncio.Semaphore(limits.SCHEMA_THREADS_MAX)
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._changes = 0  # that wait, or are being made
        self._open = asyncio.Event()
        self._open.set()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of work that reads the state."""
        await self._free.acquire()
        try:
            while not self._open.is_set():
                await self._open.wait()
            under_way = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except BaseException:
            self._free.release()
            raise
        self._inside += 1
        self._empty.clear()
        under_way.add_done_callback(self._leave)
        return await asyncio.shield(under_way)  # a thread cannot be called back

    def _leave(self, _: asyncio.Future[Any]) -> None:
        self._free.release()
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    @contextlib.asynccontextmanager
    async def change(self) -> AsyncIterator[None]:
        """Nothing reads the state in a thread inside this block."""
        self._changes += 1
        self._open.clear()
        try:
            await self._empty.wait()
            yield
        finally:
            self._changes -= 1
            if not self._changes:
                self._open.set()
