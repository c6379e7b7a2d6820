"""Syncer: fsync off the event loop, shared by all who wait for it.

A partition that must not acknowledge before its bytes are on disk (`ottla.fsync.before.ack`) asks for a sync after
each append. One sync per partition runs at a time; everything appended meanwhile shares the next one. When it is done
the partition's high watermark moves and its waiters are told. A failed fsync is never retried over the same pages
(the kernel may have dropped them): the tail that was not durable is cut off, and its producers get a storage error.
The threads are the data directory's own: a disk that takes seconds keeps neither other disks nor other work waiting.

A segment that ended is synced as well, with default settings too, in the background and of a few logs at a time
(`seal`): so the recovery point follows, and a start after a crash reads the end of each log only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.loop.disk_threads import DiskThreads
from ottla.server.storage.log_work import LogWork, error_of
from ottla.server.storage.partitions import Partitions


class Syncer(LogWork):
    failed_saying = "fsync of {} failed: {}"

    def __init__(
        self, loop: Any, threads: DiskThreads, partitions: Partitions, changed: Callable[[Partition], None]
    ) -> None:
        super().__init__(loop, threads, partitions, changed)
        self._sealed: dict[Partition, None] = {}  # with segments that wait for their turn
        self._sealing: dict[Partition, None] = {}  # of those that are running, the ones nobody waits for
        self._seals = False  # between `start` and `idle`

    def start(self) -> None:
        """From now on segments that end are synced, beginning with those that recovery has read."""
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
        """A segment of it ended. The sync begins when the append that ended it is done."""
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
        """Sync it no more until `let_go`, so that nothing more counts as synced; False if a sync is under way."""
        if partition in self._running:
            return False
        self._running[partition] = False
        return True

    def let_go(self, partition: Partition) -> None:
        """What it asked for meanwhile is done now."""
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
        future.add_done_callback(lambda done: self._finished(partition, done))

    def _finished(self, partition: Partition, done: Any) -> None:
        error = error_of(done)
        if error is not None:
            self._running[partition] = False  # what was appended meanwhile is cut off, too
            self._failed(partition, error)
        else:
            partition.synced()
            self._changed(partition)
        self._sealing.pop(partition, None)
        # Only now is it not running any more: whoever was told may have appended and asked for the next sync already.
        if self._running.pop(partition):
            self._start(partition)
        self._seal_next()
        self._tell_idle()

    def _failed(self, partition: Partition, error: BaseException) -> None:
        if self._give_up(partition, error, partition.sync_failed):
            self._changed(partition)

    async def idle(self) -> None:
        """Waits until no sync runs any more; none of a segment begins after this, since a stop syncs them all."""
        self._seals = False
        self._sealed.clear()
        await super().idle()


def _sync_all(files: list[Any]) -> None:
    """Runs in a worker thread."""
    for file in files:
        file.sync()
