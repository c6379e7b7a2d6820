"""Log work: jobs for the logs of partitions that threads of their data directories do, one per partition at a time.

What a job is, and what follows from it, the kinds say: `Syncer` (fsync) and `Writer` (what waits to be written).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ottla.log.files.disk import StorageError
from ottla.replica.partition import Partition
from ottla.server.loop.disk_threads import DiskThreads
from ottla.server.storage.partitions import Partitions

log = logging.getLogger(__name__)


class LogWork:
    failed_saying: str  # what a job that failed says, of a partition and an error

    def __init__(
        self, loop: Any, threads: DiskThreads, partitions: Partitions, changed: Callable[[Partition], None]
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._partitions = partitions
        self._changed = changed
        self._running: dict[Partition, bool] = {}  # value: there is more to do since the job began
        self._idle: asyncio.Event | None = None

    def _give_up(self, partition: Partition, error: BaseException, cut: Callable[[], None]) -> bool:
        """A job failed: what it was for is cut off, and the directory told; False if nobody needs it any more."""
        if not self._partitions.holds(partition):
            return False  # deleted meanwhile, its files with it; whoever waited was told
        log.error("%s", self.failed_saying.format(partition, error))
        try:
            cut()
        except StorageError as second:
            error = second  # what could not be cut off yet, the log cuts off before it appends or syncs anything
        if isinstance(error, StorageError):
            self._partitions.storage_failed(partition, error)
        return True

    def _tell_idle(self) -> None:
        if self._idle is not None and not self._running:
            self._idle.set()

    async def idle(self) -> None:
        """Waits until no job runs any more."""
        if self._running:
            self._idle = asyncio.Event()
            await self._idle.wait()


def error_of(done: asyncio.Future[None]) -> BaseException | None:
    """What a job ended with, if it did not end well."""
    return asyncio.CancelledError() if done.cancelled() else done.exception()
