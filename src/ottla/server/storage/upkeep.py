"""Upkeep: periodic work for the partitions of a node: retention, checkpoints, flushes, compaction.

Every job is proportional to the work that is due, or visits a bounded number of partitions per turn of the loop;
blocking calls are made in worker threads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from ottla.cluster.entities import Change, PartitionChanged, TopicDeleted
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.settings.log import LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS, LOG_RETENTION_CHECK_INTERVAL_MS
from ottla.model.settings.replication import REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
from ottla.model.settings.transactions import PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS
from ottla.replica.partition import Partition
from ottla.server.loop.periodic_jobs import PeriodicJobs
from ottla.server.loop.runtime import Runtime
from ottla.server.settings.configs import Configs
from ottla.server.storage.checkpoints import Checkpoints
from ottla.server.storage.cleaning import Cleaner, CleanerCounts
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.recovery import recover_late
from ottla.server.storage.removal import remove_all
from ottla.server.storage.syncing import Syncer

log = logging.getLogger(__name__)

OPENING_MS = 50
RESTING_MS = 500  # the pause when all partitions are open
REMOVING_MS = 1_000
FLUSH_CHECK_MS = 500
_PRODUCERS_PER_LOOK = 100  # so many take as long as visiting a partition without work
MINUTE_MS = 60_000


class Upkeep:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        partitions: Partitions,
        checkpoints: Checkpoints,
        syncer: Syncer,
        changed: Callable[[Partition], None],
    ) -> None:
        """`changed` notifies the waiters of a partition."""
        self._runtime = runtime
        self._configs = configs
        self._partitions = partitions
        self._checkpoints = checkpoints
        self._syncer = syncer
        self._changed = changed
        self._jobs = PeriodicJobs(runtime.loop)
        self._unflushed_since_ms: dict[Partition, int] = {}
        self._trash_due_ms: dict[Partition, int] = {}  # partitions with segments that wait to be removed
        self._cleaner = Cleaner(runtime, configs, partitions, on_swap=self._has_trash)
        self.deleted_segments = self.deleted_bytes = 0  # by retention
        self._too_high = asyncio.Event()  # set if a recovery point on disk is above that of a truncated log

    def start(self) -> None:
        self._partitions.recover_late()
        self._cleaner.start()
        settings, every = self._configs.broker, self._jobs.every
        every("opening", OPENING_MS, self._open_some)
        every("removing", REMOVING_MS, self._remove)
        every("flush", FLUSH_CHECK_MS, self._flush)
        every("retention", settings[LOG_RETENTION_CHECK_INTERVAL_MS], self._retain)
        every("lower checkpoints", 0, self._lower_checkpoints)
        every("checkpoints", settings[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], self._checkpoint)
        watermarks_ms = settings[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS]
        every("high watermarks", watermarks_ms, self._checkpoint_high_watermarks)
        every("producers", settings[PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS], self._expire_producers)
        every("minutes", MINUTE_MS, self._minute)

    @property
    def cleaner_counts(self) -> CleanerCounts:
        return self._cleaner.counts

    async def stop(self) -> None:
        """Return when no job runs any more, not even in a thread."""
        await self._jobs.stop()
        await self._cleaner.stop()

    def follow(self, changes: Iterable[Change]) -> None:
        node_id = self._partitions.node_id
        for change in changes:
            match change:
                case TopicDeleted(topic):
                    self._cleaner.forget(topic, [state.index for state in topic.partitions])
                case PartitionChanged(topic, old, new) if node_id in old.replicas and node_id not in new.replicas:
                    self._cleaner.forget(topic, [new.index])

    async def _each(self, visit: Callable[[Partition], Iterator[int]]) -> None:
        """Visit all opened partitions, some per turn of the loop.

        A visit yields the cost of its work, in units of one partition where nothing is to be done.
        """
        left = limits.PARTITIONS_VISITED_PER_TURN
        for partition in tuple(self._partitions.opened()):
            visiting = visit(partition)
            while self._partitions.holds(partition):
                try:
                    left -= next(visiting)
                except StopIteration:
                    break
                except StorageError as error:
                    self._partitions.storage_failed(partition, error)
                    break
                if left <= 0:
                    await asyncio.sleep(0)
                    left = limits.PARTITIONS_VISITED_PER_TURN

    async def _open_some(self) -> None:
        """Open some partitions, after a worker has read into the page cache what opening them needs."""
        await recover_late(self._partitions, self._runtime.in_worker)
        directory_of = self._partitions.directory_of
        names = islice(self._partitions.unopened, limits.PARTITIONS_OPENED_PER_TURN)
        places = [(directory.disk, str(name)) for name in names if (directory := directory_of(name)) is not None]
        warming = [work for disk, path in places if (work := disk.warming(path)) is not None]
        if warming:
            await self._runtime.in_worker(_warm, warming)
        if not self._partitions.open_some(limits.PARTITIONS_OPENED_PER_TURN):
            await asyncio.sleep(RESTING_MS / 1000)

    def _has_trash(self, partition: Partition) -> None:
        self._trash_due_ms.setdefault(partition, self._runtime.now_ms() + partition.log.config.file_delete_delay_ms)

    async def _remove(self) -> None:
        """Remove the files of deleted topics and segments whose delay is over."""
        while self._partitions.retirement.go_on():
            await self._runtime.slices.turn()
        now_ms, steady_ms = self._runtime.now_ms(), self._runtime.steady_ms()
        while doomed := self._partitions.removal.take_due(steady_ms, limits.DIRECTORIES_REMOVED_AT_ONCE):
            await self._runtime.in_worker(remove_all, doomed)
        for partition in [each for each, due_ms in self._trash_due_ms.items() if due_ms <= now_ms]:
            del self._trash_due_ms[partition]
            if self._partitions.holds(partition):
                try:
                    due_ms = await self._runtime.in_worker(partition.log.remove_deleted, now_ms)
                    if due_ms is not None:
                        self._trash_due_ms[partition] = due_ms
                except StorageError as error:
                    self._partitions.storage_failed(partition, error)

    def _flush(self) -> None:
        """Sync partitions in time for `flush.ms`: no record stays unsynced for longer."""
        now_ms = self._runtime.steady_ms()
        since = self._unflushed_since_ms
        self._unflushed_since_ms = {}
        for partition in self._partitions.flushed_by_time:
            if not partition.log.unflushed:
                continue
            since_ms = since.get(partition, now_ms)
            if now_ms - since_ms + FLUSH_CHECK_MS >= partition.log.config.flush_ms:
                self._syncer.request(partition)
            else:
                self._unflushed_since_ms[partition] = since_ms

    async def _retain(self) -> None:
        await self._each(self._retain_one)

    def _retain_one(self, partition: Partition) -> Iterator[int]:
        at_most = limits.SEGMENTS_DELETED_PER_TURN
        size_bytes = partition.log.size_bytes
        while deleted := partition.log.delete_old_segments(self._runtime.now_ms(), partition.high_watermark, at_most):
            self.deleted_segments += deleted
            self.deleted_bytes += size_bytes - partition.log.size_bytes
            size_bytes = partition.log.size_bytes
            self._has_trash(partition)
            self._changed(partition)
            # followers learn the new log start offset with their next fetch
            self._partitions.neighbours.grew(partition, hurry=False)
            yield 1 + deleted * limits.PARTITIONS_VISITED_PER_TURN // at_most
        yield 1

    def cut(self, partition: Partition) -> None:
        """Handle a truncation of the partition's log, after which records of another leader replace the old ones."""
        self._cleaner.cut(partition)
        if self._checkpoints.is_below(partition):
            self._too_high.set()

    async def _lower_checkpoints(self) -> None:
        """Lower recovery points soon after a truncation, as Kafka does: recovery would not check the records that
        replace the truncated ones if they lay below the recovery point.
        """
        await self._too_high.wait()
        self._too_high.clear()
        await self._checkpoint()

    async def _checkpoint(self) -> None:
        checkpoints = self._checkpoints
        for directory in self._partitions.directories:
            if not directory.offline:
                await checkpoints.write(checkpoints.collect(directory))

    async def _checkpoint_high_watermarks(self) -> None:
        checkpoints = self._checkpoints
        for directory in self._partitions.directories:
            collection = None if directory.offline else checkpoints.collect_high_watermarks(directory)
            if collection is not None:
                await checkpoints.write(collection)

    async def _minute(self) -> None:
        def minute(partition: Partition) -> Iterator[int]:
            partition.log.minute()
            yield 1

        await self._each(minute)

    async def _expire_producers(self) -> None:
        now_ms = self._runtime.now_ms()

        def expire(partition: Partition) -> Iterator[int]:
            work = 1 + len(partition.log.producers) // _PRODUCERS_PER_LOOK
            partition.log.expire_producers(now_ms)
            yield work

        await self._each(expire)


def _warm(warming: Sequence[Callable[[], None]]) -> None:
    """Run all of them; runs in a worker thread."""
    for work in warming:
        work()
