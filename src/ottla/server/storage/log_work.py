"""LogWork: jobs for the logs of partitions, done by threads of their data directories, one per partition at a time.

Subclasses define the job and its consequences: `Syncer` (fsync) and `Writer` (late writes).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ottla.log.files.disk import StorageError
from ottla.replica.partition import Partition
from ottla.server.loop.disk_threads import DiskThreads
from ottla.server.storage.partitions import Partitions

log = logging.getLogger(__name__)


class LogWork:
    failed_saying: str  # the log message of a failed job, with the partition and the error

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: DiskThreads,
        partitions: Partitions,
        changed: Callable[[Partition], None],
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._partitions = partitions
        self._changed = changed
        self._running: dict[Partition, bool] = {}  # value: whether more work was requested since the job began
        self._idle: asyncio.Event | None = None

    def _give_up(self, partition: Partition, error: BaseException, cut: Callable[[], None]) -> bool:
        """Handle a failed job: truncate the records it was for and report the failure; False if the
        partition is gone.
        """
        if not self._partitions.holds(partition):
            return False  # deleted meanwhile with its files; its waiters were notified
        log.error("%s", self.failed_saying.format(partition, error))
        try:
            cut()
        except StorageError as second:
            error = second  # the log truncates it before its next append or sync
        if isinstance(error, StorageError):
            self._partitions.storage_failed(partition, error)
        return True

    def _tell_idle(self) -> None:
        if self._idle is not None and not self._running:
            self._idle.set()

    async def idle(self) -> None:
        """Wait until no job runs any more."""
        if self._running:
            self._idle = asyncio.Event()
            await self._idle.wait()


def error_of(done: asyncio.Future[None]) -> BaseException | None:
    """Return the exception that a job ended with, or None."""
    return asyncio.CancelledError() if done.cancelled() else done.exception()
