"""Writer: what logs have appended while their disk makes writers wait is written by threads of that data directory.

As a rule a write is a copy into the page cache, done on the loop. When one took long (`limits.SLOW_WRITE_S`) the
directory is slow: its logs append in memory (`log.unwritten`), and ask for a worker here. One per log runs at a time,
so records are written in the order of their offsets; what is appended meanwhile is written by the next one. Then the
records count: high watermarks move, and whoever waits is told. Other directories are written to as ever, and nothing
else that clients ask for waits.

A write that fails (a full disk) cuts off what waited: its producers get a storage error, as if it had been refused.

What waits is a copy. The connection of the client that sent it is held (`held_until_written`): it sends no more, and
its receive buffer, which counts as memory of requests, is as large as what waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from ottla.log.disk import File, StorageError
from ottla.log.log import Log
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.answer import Later
from ottla.server.context import Context
from ottla.server.disk_threads import DiskThreads
from ottla.server.partitions import Partitions

logger = logging.getLogger(__name__)


class Writer:
    def __init__(
        self, loop: Any, threads: DiskThreads, partitions: Partitions, changed: Callable[[Partition], None]
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._partitions = partitions
        self._changed = changed
        self._running: dict[Partition, None] = {}
        self._idle: asyncio.Event | None = None
        self.count = 0  # of jobs for workers so far

    def request(self, partition: Partition) -> None:
        """Something of it waits."""
        if partition not in self._running:
            self._start(partition)

    def _start(self, partition: Partition) -> None:
        self.count += 1
        log = partition.log
        executor = self._threads.of(log.directory.disk)
        future = self._loop.run_in_executor(executor, _write_all, log.unwritten.files())
        self._running[partition] = None
        future.add_done_callback(lambda done: self._finished(partition, log, done))

    def _finished(self, partition: Partition, log: Log, done: Any) -> None:
        del self._running[partition]
        try:
            error = asyncio.CancelledError() if done.cancelled() else done.exception()
            if error is not None and partition.log is log:
                self._failed(partition, error)
            else:  # of a log that the partition has left, nobody needs what was to be written
                partition.written()
                if partition.log.unwritten:
                    self._start(partition)
            self._changed(partition)
        finally:
            if self._idle is not None and not self._running:
                self._idle.set()

    def _failed(self, partition: Partition, error: BaseException) -> None:
        if not self._partitions.holds(partition):
            return  # deleted meanwhile, its files with it; whoever waited was told
        logger.error("what was appended to %s cannot be written: %s", partition.name, error)
        try:
            partition.write_failed()
        except StorageError as second:
            error = second  # what waited is not cut off yet: the log does it before it appends or syncs anything
        if isinstance(error, StorageError):
            self._partitions.storage_failed(partition, error)

    async def idle(self) -> None:
        """Waits until nothing is being written. What is appended after that is written when logs are closed."""
        if self._running:
            self._idle = asyncio.Event()
            await self._idle.wait()


def _write_all(files: list[File]) -> None:
    """Runs in a worker thread."""
    for file in files:
        file.write_waiting()


def held_until_written(context: Context, appended: Sequence[tuple[Partition, int]]) -> None:
    """Holds the connection until its records, which end at these offsets, are written or given up."""
    waiting = [(partition, partition.cuts, end) for partition, end in appended]

    def settle(changed: object) -> bool:
        waiting[:] = [each for each in waiting if _waits(context, *each)]
        if waiting and changed is not None:
            return False
        context.let_go()
        return True

    context.hold()
    context.services.waiters.watch(Later(), [partition for partition, _ in appended], settle, limits.WAIT_MS_MAX)


def _waits(context: Context, partition: Partition, cuts: int, end: int) -> bool:
    is_here = partition.cuts == cuts and context.partitions.holds(partition)
    return is_here and partition.log.written_offset < end
