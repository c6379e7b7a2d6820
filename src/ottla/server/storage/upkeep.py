"""Upkeep: what a node does by the clock — retention, checkpoints, flushes, compaction, idle connections.

Every job is proportional to what is due, or looks at a bounded number of partitions per turn of the loop; what blocks
goes to the worker threads. A job that fails is logged and comes back at its next turn: upkeep never takes the node
down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ottla.cluster.entities import Change, PartitionChanged, TopicDeleted
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.settings.log import LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS, LOG_RETENTION_CHECK_INTERVAL_MS
from ottla.model.settings.replication import REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS
from ottla.model.settings.transactions import PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS
from ottla.replica.partition import Partition
from ottla.server.loop.workers import in_worker
from ottla.server.storage.cleaning import Cleaner
from ottla.server.storage.recovery import recover_late
from ottla.server.storage.removal import remove_all

if TYPE_CHECKING:
    from ottla.server.node import Node

log = logging.getLogger(__name__)

TIDY_MS = 1_000
OPENING_MS = 50
RESTING_MS = 500  # when nothing is left to be opened
REMOVING_MS = 1_000
FLUSH_CHECK_MS = 500
METADATA_MS = 10_000
_PRODUCERS_PER_LOOK = 100  # they take as long as a look at a partition where nothing is to be done
MINUTE_MS = 60_000

Job = Callable[[], Awaitable[None] | None]


class Upkeep:
    def __init__(self, loop: asyncio.AbstractEventLoop, node: Node) -> None:
        self._loop = loop
        self._node = node
        self._partitions = node.partitions
        self._now_ms = node.ports.now_ms
        self._tasks: list[asyncio.Task[None]] = []
        self._unflushed_since_ms: dict[Partition, int] = {}
        self._trash_due_ms: dict[Partition, int] = {}  # segments of theirs wait for their removal
        self._cleaner = Cleaner(loop, node, on_swap=self._has_trash)
        node.partitions.on_cut = self._cut
        node.partitions.recovers_late = True
        self._too_high = asyncio.Event()  # a recovery point on disk is above the one of a log that was cut
        settings = node.configs.broker
        self._every("spark readers", TIDY_MS, lambda: node.services.spark_readers.commit(node.services))
        self._every("connections", TIDY_MS, self._tidy_connections)
        self._every("opening", OPENING_MS, self._open_some)
        self._every("removing", REMOVING_MS, self._remove)
        self._every("flush", FLUSH_CHECK_MS, self._flush)
        self._every("retention", settings[LOG_RETENTION_CHECK_INTERVAL_MS], self._retain)
        self._every("lower checkpoints", 0, self._lower_checkpoints)
        self._every("checkpoints", settings[LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS], self._checkpoint)
        watermarks_ms = settings[REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS]
        self._every("high watermarks", watermarks_ms, self._checkpoint_high_watermarks)
        self._every("metadata", METADATA_MS, lambda: node.metadata.upkeep(node.ports.now_ms()))
        self._every("producers", settings[PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS], self._expire_producers)
        self._every("minutes", MINUTE_MS, self._minute)

    def _every(self, name: str, interval_ms: float, job: Job) -> None:
        """Runs `job` again and again, `interval_ms` after it ended."""

        async def forever() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                try:
                    waiting = job()
                    if waiting is not None:
                        await waiting
                except Exception:
                    log.exception("upkeep: %s failed", name)

        self._tasks.append(self._loop.create_task(forever()))

    async def stop(self) -> None:
        """Returns when nothing of it runs any more, in no thread."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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
        """Visits all opened partitions, a part of them at each turn of the loop: until the work that visits tell of, in
        looks at a partition where nothing is to be done, is enough."""
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

    def _in_worker(self, work: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        return in_worker(self._loop, self._node.ports.executor, work, *args)

    async def _tidy_connections(self) -> None:
        """Some at each turn: one that is looked at may have requests to be handled."""
        door, slices = self._node.door, self._node.services.slices
        for number, connection in enumerate(tuple(door.connections), start=1):
            if not connection.closed:
                connection.tidy(self._loop.time(), door.max_idle_s)
            if number % limits.CONNECTIONS_TIDIED_PER_SLICE == 0:
                await slices.turn()

    async def _open_some(self) -> None:
        """What opening them reads is brought into memory first, by a worker."""
        await recover_late(self._partitions, self._in_worker)
        directory_of = self._partitions.directory_of
        names = islice(self._partitions.unopened, limits.PARTITIONS_OPENED_PER_TURN)
        places = [(directory.disk, str(name)) for name in names if (directory := directory_of(name)) is not None]
        warming = [work for disk, path in places if (work := disk.warming(path)) is not None]
        if warming:
            await self._in_worker(_warm, warming)
        if not self._partitions.open_some(limits.PARTITIONS_OPENED_PER_TURN):
            await asyncio.sleep(RESTING_MS / 1000)

    def _has_trash(self, partition: Partition) -> None:
        self._trash_due_ms.setdefault(partition, self._now_ms() + partition.log.config.file_delete_delay_ms)

    async def _remove(self) -> None:
        """The files of deleted topics and segments whose delay is over."""
        while self._partitions.retirement.go_on():
            await self._node.services.slices.turn()
        now_ms, steady_ms = self._now_ms(), self._node.services.steady_ms()
        while doomed := self._partitions.removal.take_due(steady_ms, limits.DIRECTORIES_REMOVED_AT_ONCE):
            await self._in_worker(remove_all, doomed)
        for partition in [each for each, due_ms in self._trash_due_ms.items() if due_ms <= now_ms]:
            del self._trash_due_ms[partition]
            if self._partitions.holds(partition):
                try:
                    due_ms = await self._in_worker(partition.log.remove_deleted, now_ms)
                    if due_ms is not None:
                        self._trash_due_ms[partition] = due_ms
                except StorageError as error:
                    self._partitions.storage_failed(partition, error)

    def _flush(self) -> None:
        """`flush.ms`: no record waits longer than that to be synced."""
        now_ms = self._node.services.steady_ms()
        since = self._unflushed_since_ms
        self._unflushed_since_ms = {}
        for partition in self._partitions.flushed_by_time:
            if not partition.log.unflushed:
                continue
            since_ms = since.get(partition, now_ms)
            if now_ms - since_ms + FLUSH_CHECK_MS >= partition.log.config.flush_ms:
                self._node.services.syncer.request(partition)
            else:
                self._unflushed_since_ms[partition] = since_ms

    async def _retain(self) -> None:
        await self._each(self._retain_one)

    def _retain_one(self, partition: Partition) -> Iterator[int]:
        at_most = limits.SEGMENTS_DELETED_PER_TURN
        while deleted := partition.log.delete_old_segments(self._now_ms(), partition.high_watermark, at_most):
            self._has_trash(partition)
            self._node.services.waiters.notify(partition)
            self._partitions.neighbours.grew(partition, hurry=False)  # they learn where it starts with what comes next
            yield 1 + deleted * limits.PARTITIONS_VISITED_PER_TURN // at_most
        yield 1

    def _cut(self, partition: Partition) -> None:
        self._cleaner.cut(partition)
        if self._partitions.checkpoints.is_below(partition):
            self._too_high.set()

    async def _lower_checkpoints(self) -> None:
        """At once after a cut, as Kafka does it: what is written in its place would be believed without a look."""
        await self._too_high.wait()
        self._too_high.clear()
        await self._checkpoint()

    async def _checkpoint(self) -> None:
        checkpoints = self._partitions.checkpoints
        for directory in self._partitions.directories:
            if not directory.offline:
                await checkpoints.write(checkpoints.collect(directory), self._node.ports.executor)

    async def _checkpoint_high_watermarks(self) -> None:
        checkpoints = self._partitions.checkpoints
        for directory in self._partitions.directories:
            collection = None if directory.offline else checkpoints.collect_high_watermarks(directory)
            if collection is not None:
                await checkpoints.write(collection, self._node.ports.executor)

    async def _minute(self) -> None:
        def minute(partition: Partition) -> Iterator[int]:
            partition.log.minute()
            yield 1

        await self._each(minute)

    async def _expire_producers(self) -> None:
        now_ms = self._now_ms()

        def expire(partition: Partition) -> Iterator[int]:
            work = 1 + len(partition.log.producers) // _PRODUCERS_PER_LOOK
            partition.log.expire_producers(now_ms)
            yield work

        await self._each(expire)


def _warm(warming: Sequence[Callable[[], None]]) -> None:
    """Runs in a worker thread."""
    for work in warming:
        work()
