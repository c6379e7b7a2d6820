"""Flushing: makes the changes of the metadata journal durable in a worker: its log, votes, the end of a doubt (ADR
0022).

One piece of work runs at a time; everything requested meanwhile shares the next one. Work that failed is repeated after
a pause as long as a caller waits for it (`settle`); a failed flush without a waiting caller is left to consensus, which
requests another one. While a node starts, and if there are no workers, all work is done in the calling thread at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from ottla.cluster.store import JournalWork, MetadataStore
from ottla.log.durable import Syncable
from ottla.log.files.disk import StorageError
from ottla.raft.events import Event, Flushed, JournalFailed
from ottla.raft.node import JOURNAL_PAUSE_MS

log = logging.getLogger(__name__)

Then = Callable[[], None]


class Flushing:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        store: MetadataStore,
        executor: Executor | None,
        step: Callable[[Event], None],
    ) -> None:
        self._loop = loop
        self._store = store
        self._executor = executor
        self._step = step
        self._running = False
        self._is_wanted = False  # whether the next piece of work includes a flush of the log
        self._waiting: list[Then] = []  # callbacks for when the next piece of work is done
        self._retry: asyncio.TimerHandle | None = None
        self._idle: asyncio.Event | None = None

    @property
    def in_place(self) -> bool:
        """Whether all work is done in the calling thread: while the node starts or has stopped, or without workers."""
        return self._store.works_at_once

    def begin_to_serve(self) -> None:
        """Use workers from now on, if there are any, so that nothing blocks the loop."""
        if self._executor is not None:
            self._store.work_later()

    def request(self) -> None:
        """Flush the log, then step consensus with `Flushed`."""
        if self.in_place:
            self._flush()
        else:
            self._is_wanted = True
            self._start()

    def settle(self, then: Then, *, flush: bool = False) -> None:
        """Do the deferred work of the store, and flush the log if `flush` is set, then call `then`."""
        self._waiting.append(then)
        self._is_wanted = self._is_wanted or flush
        self._start()

    def _flush(self) -> None:
        try:
            self._store.flush()
        except StorageError as error:
            self._failed(error)
        else:
            self._step(Flushed())

    def _start(self) -> None:
        if self._running or self._retry is not None or not (self._is_wanted or self._waiting):
            return
        waiting, self._waiting = self._waiting, []
        work = self._store.take_work()
        flush, self._is_wanted = work.flush or self._is_wanted, False
        try:
            files = self._store.begin_flush() if flush else []
        except StorageError as error:
            self._again_later(work, flush, waiting)
            self._failed(error)
            return
        self._running = True
        future = self._loop.run_in_executor(self._executor, _carry_out, work.steps, files)
        future.add_done_callback(lambda done: self._finished(done, work, flush, waiting))

    def _finished(self, done: asyncio.Future[None], work: JournalWork, flush: bool, waiting: list[Then]) -> None:
        self._running = False
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is not None:
            if flush:
                self._store.flush_failed()
            self._again_later(work, flush, waiting)
            self._failed(error)
        else:
            if flush:
                self._store.end_flush()
                self._step(Flushed())
            for then in waiting:
                then()
        self._start()
        if self._idle is not None and not self._running:
            self._idle.set()

    def _again_later(self, work: JournalWork, flush: bool, waiting: list[Then]) -> None:
        if waiting:
            self._store.put_back(work)  # unchanged: consensus does not wait for a flush that other callers requested
            self._is_wanted = self._is_wanted or flush
            self._waiting = waiting + self._waiting
            self._retry = self._loop.call_later(JOURNAL_PAUSE_MS / 1000, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._start()

    def _failed(self, error: BaseException) -> None:
        log.error("the metadata log cannot be put on disk: %s", error)
        self._step(JournalFailed())

    async def stop(self) -> None:
        """Finish the work that is running and drop what waits; the rest of a stop works in the calling thread."""
        if self._retry is not None:
            self._retry.cancel()
        self._waiting.clear()
        self._is_wanted = False
        if self._running:
            self._idle = asyncio.Event()
            await self._idle.wait()
        self._store.work_at_once()


def _carry_out(steps: Sequence[Then], files: Sequence[Syncable]) -> None:
    """Do the work; runs in a worker thread."""
    for step in steps:
        step()
    _sync_all(files)


def _sync_all(files: Sequence[Syncable]) -> None:
    for file in files:
        file.sync()
