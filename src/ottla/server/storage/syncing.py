"""Syncer: fsync in threads, one sync for all appends that wait for it.

A partition that must not acknowledge before its bytes are on disk (`ottla.fsync.before.ack`) asks for a sync after each
append. One sync per partition runs at a time; everything appended meanwhile shares the next one. When a sync is done,
the partition's high watermark moves and its waiters are notified. A failed fsync is never retried over the same pages
(the kernel may have dropped them): the records that were not durable are truncated, and their producers get a storage
error. Each data directory has its own threads: a disk that takes seconds delays neither other disks nor other work.

A segment that was rolled is synced as well, even with default settings, in the background and for a few logs at a time
(`seal`): so the recovery point advances, and a start after a crash reads only the end of each log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.log.durable import Syncable
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.observe.metrics.histogram import RecentHistogram
from ottla.replica.partition import Partition
from ottla.server.loop.disk_threads import DiskThreads
from ottla.server.storage.log_work import LogWork, error_of
from ottla.server.storage.partitions import Partitions


class Syncer(LogWork):
    failed_saying = "fsync of {} failed: {}"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: DiskThreads,
        partitions: Partitions,
        changed: Callable[[Partition], None],
    ) -> None:
        super().__init__(loop, threads, partitions, changed)
        self._sealed: dict[Partition, None] = {}  # partitions with rolled segments that wait to be synced
        self._sealing: dict[Partition, None] = {}  # running syncs of rolled segments, for which no request waits
        self._seals = False  # between `start` and `idle`
        self.times = RecentHistogram()  # how long syncs took, in microseconds

    def start(self) -> None:
        """Sync rolled segments from now on, beginning with those that recovery has read."""
        self._seals = True
        for partition in self._partitions.opened():
            if partition.log.has_unsynced_segments:
                self.seal(partition)

    def request(self, partition: Partition) -> None:
        if partition in self._running:
            self._running[partition] = True
        else:
            self._start(partition)

    def seal(self, partition: Partition) -> None:
        """Request a sync of a segment that was just rolled. The sync begins after the current append."""
        if self._seals and partition not in self._sealed:
            self._sealed[partition] = None
            self._loop.call_soon(self._seal_next)

    def _seal_next(self) -> None:
        while self._sealed and len(self._sealing) < limits.SEALED_SYNCS_AT_ONCE:
            partition = next(iter(self._sealed))
            del self._sealed[partition]
            if not partition.log.has_unsynced_segments or not self._partitions.holds(partition):
                continue
            if partition not in self._running:
                self._sealing[partition] = None
            self.request(partition)

    def hold(self, partition: Partition) -> bool:
        """Prevent syncs of the partition until `let_go`, so its synced offset does not move; False if a sync is
        running.
        """
        if partition in self._running:
            return False
        self._running[partition] = False
        return True

    def let_go(self, partition: Partition) -> None:
        """Allow syncs again, and start one if it was requested meanwhile."""
        if self._running.pop(partition) and self._partitions.holds(partition):
            self._start(partition)
        self._tell_idle()

    def _start(self, partition: Partition) -> None:
        try:
            files = partition.log.files_to_sync()
        except StorageError as error:
            self._sealing.pop(partition, None)
            self._failed(partition, error)
            return
        self._running[partition] = False
        executor = self._threads.of(partition.log.directory.disk)
        future = self._loop.run_in_executor(executor, _sync_all, files)
        begun_s = self._loop.time()
        future.add_done_callback(lambda done: self._finished(partition, done, begun_s))

    def _finished(self, partition: Partition, done: asyncio.Future[None], begun_s: float) -> None:
        self.times.all.add(int((self._loop.time() - begun_s) * 1e6))
        error = error_of(done)
        if error is not None:
            self._running[partition] = False  # records appended meanwhile are truncated, too
            self._failed(partition, error)
        else:
            partition.synced()
            self._changed(partition)
        self._sealing.pop(partition, None)
        # Removed only now: the callbacks above may have appended records and requested the next sync already.
        if self._running.pop(partition):
            self._start(partition)
        self._seal_next()
        self._tell_idle()

    def _failed(self, partition: Partition, error: BaseException) -> None:
        if self._give_up(partition, error, partition.sync_failed):
            self._changed(partition)

    async def idle(self) -> None:
        """Wait until no sync runs any more; rolled segments are not synced after this, because a stop syncs
        all logs.
        """
        self._seals = False
        self._sealed.clear()
        await super().idle()


def _sync_all(files: list[Syncable]) -> None:
    """Sync all files; runs in a worker thread."""
    for file in files:
        file.sync()
