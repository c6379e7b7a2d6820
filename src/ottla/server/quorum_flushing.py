"""Flushing: the metadata log's fsync, off the event loop where other voters make it worth while.

One at a time; everything appended meanwhile shares the next one. A sole voter, and a node without workers, syncs at
once and in place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from ottla.cluster.store import Store
from ottla.log.disk import StorageError
from ottla.log.durable import Syncable
from ottla.raft.events import Event, Flushed, JournalFailed

log = logging.getLogger(__name__)


class Flushing:
    loop: asyncio.AbstractEventLoop

    def __init__(self, store: Store, executor: Executor | None, step: Callable[[Event], None]) -> None:
        self._store = store
        self._executor = executor
        self._step = step
        self._running = False
        self._again = False
        self._idle: asyncio.Event | None = None

    def request(self, *, alone: bool) -> None:
        if self._running:
            self._again = True
        elif alone or self._executor is None:
            self._flush()
        else:
            self._start(self._executor)

    def _flush(self) -> None:
        try:
            self._store.flush()
        except StorageError as error:
            self._failed(error)
        else:
            self._step(Flushed())

    def _start(self, executor: Executor) -> None:
        try:
            files = self._store.begin_flush()
        except StorageError as error:
            self._failed(error)
            return
        self._running = True
        self.loop.run_in_executor(executor, _sync_all, files).add_done_callback(self._finished)

    def _finished(self, done: asyncio.Future[None]) -> None:
        self._running = False
        again, self._again = self._again, False
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            self._store.flush_failed()
            self._failed(error)
        else:
            self._store.end_flush()
            self._step(Flushed())
        if again and not self._running:
            self.request(alone=False)
        if self._idle is not None and not self._running:
            self._idle.set()

    def _failed(self, error: BaseException) -> None:
        log.error("the metadata log cannot be put on disk: %s", error)
        self._step(JournalFailed())

    async def idle(self) -> None:
        """Until no sync runs."""
        if self._running:
            self._idle = asyncio.Event()
            await self._idle.wait()


def _sync_all(files: Sequence[Syncable]) -> None:
    """Runs in a worker thread."""
    for file in files:
        file.sync()
