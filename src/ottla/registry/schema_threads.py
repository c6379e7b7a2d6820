"""Runs work on schemas in threads: parsing and comparing schemas from requests may take seconds.

Rules:
- Work in a thread reads the state, which only the event loop changes: so the state must not change while any work runs.
  A change waits for the work that has begun, and work that has not begun waits for the change.
- Work begins when a thread is free for it, not before. So a change waits for at most as many pieces of work as there
  are threads (`limits.SCHEMA_THREADS_MAX`), however many are queued.
- Queued work begins in order of arrival.
- A request that parses nothing is answered in the loop and waits for neither.
- A cancelled request does not end its thread: the state stays unchanged until the thread has ended by itself. The
  limits of the work bound how long that may take (`model/limits/`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ottla.model import limits

T = TypeVar("T")


class SchemaThreads:
    """The threads, and the exclusion of work and changes of the state."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(limits.SCHEMA_THREADS_MAX, thread_name_prefix="schemas")
        self._free = asyncio.Semaphore(limits.SCHEMA_THREADS_MAX)
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._changes = 0  # number of changes that wait or are in progress
        self._open = asyncio.Event()
        self._open.set()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run work that reads the state in a thread, and return its result."""
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
        return await asyncio.shield(under_way)  # a thread cannot be cancelled

    def _leave(self, _: asyncio.Future[Any]) -> None:
        self._free.release()
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    @contextlib.asynccontextmanager
    async def change(self) -> AsyncIterator[None]:
        """Exclude work in threads from the state inside this block."""
        self._changes += 1
        self._open.clear()
        try:
            await self._empty.wait()
            yield
        finally:
            self._changes -= 1
            if not self._changes:
                self._open.set()
