"""Cleaner: compacts the log with the highest dirty ratio, one log at a time, in a worker thread, within an I/O limit.

Only the beginning of a round and the swap of each rewritten segment run on the loop; the rest is file work on closed
segments, and syncs, in a worker. A log that cannot be read is marked as uncleanable and left as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ottla.cluster.entities import Topic
from ottla.log.compaction.schedule import Cleanable, CleanOffsets, Throttle, cleanable, dirtiest
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.setting import Setting
from ottla.model.settings.cleaner import (
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_CLEANER_ENABLE,
    LOG_CLEANER_IO_BUFFER_LOAD_FACTOR,
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND,
)
from ottla.replica.partition import Partition
from ottla.server.loop.runtime import Runtime
from ottla.server.settings.configs import Configs
from ottla.server.storage.partitions import Partitions

if TYPE_CHECKING:
    from ottla.log.files.disk import Directory
    from ottla.log.log import Log

log = logging.getLogger(__name__)

T = TypeVar("T")


class CleanerCounts:
    """What the cleaner has done since the node started."""

    def __init__(self) -> None:
        self.runs = 0
        self.read_bytes = 0
        self.ended_ms: int | None = None  # when the last run ended, on the steady clock
        self.max_dirty_ratio = 0.0  # when it looked last


class Cleaner:
    def __init__(
        self, runtime: Runtime, configs: Configs, partitions: Partitions, on_swap: Callable[[Partition], None]
    ) -> None:
        """`on_swap` is called with a partition whose old segments wait to be removed."""
        self._runtime = runtime
        self._configs = configs
        self._partitions = partitions
        self._on_swap = on_swap
        self._clean_offsets = {each.path: CleanOffsets(each.disk) for each in partitions.directories}
        self._saving: dict[CleanOffsets, asyncio.Future[None]] = {}
        self._save_again: set[CleanOffsets] = set()
        self._uncleanable: set[str] = set()
        self._throttle_bytes = 0.0
        self._throttle = Throttle(1.0)
        self._task: asyncio.Task[None] | None = None
        self.counts = CleanerCounts()

    def start(self) -> None:
        """Start compacting; all partitions must be known."""
        partitions = self._partitions
        for offsets in self._clean_offsets.values():
            self._drop(offsets, [name for name in offsets.known() if partitions.directory_of(name) is None])
        for partition in partitions.opened():
            self.cut(partition)  # the last run may have ended between a truncation and its checkpoint
        if self._setting(LOG_CLEANER_ENABLE):
            self._task = self._runtime.loop.create_task(self._forever())

    def _setting(self, setting: Setting[T]) -> T:
        """Return the current value: most of the cleaner's settings may change while the node runs."""
        return self._configs.broker[setting]

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        while self._saving:
            await asyncio.wait(tuple(self._saving.values()))
            await asyncio.sleep(0)

    def forget(self, topic: Topic, indexes: Iterable[int]) -> None:
        """Drop the checkpoints of removed partitions: a new partition of the same name is dirty from its first record
        on.
        """
        names = [TopicPartition(topic.name, index) for index in indexes]
        self._uncleanable.difference_update(f"{name}-{index}" for name, index in names)
        for offsets in self._clean_offsets.values():
            self._drop(offsets, names)

    def cut(self, partition: Partition) -> None:
        """Lower the cleaner's checkpoint after a truncation, which can reach below it after an unclean
        leader election.
        """
        offsets = self._offsets_of(partition)
        if offsets.truncate(_key(partition), partition.log.next_offset):
            self._save(offsets)

    def _drop(self, offsets: CleanOffsets, names: list[TopicPartition]) -> None:
        if offsets.drop(*names):
            self._save(offsets)

    def _save(self, offsets: CleanOffsets) -> None:
        """Write the checkpoint in a worker; changes meanwhile cause one more write."""
        if offsets in self._saving:
            self._save_again.add(offsets)
            return
        future = self._runtime.loop.run_in_executor(self._runtime.executor, offsets.saving())
        self._saving[offsets] = future
        future.add_done_callback(lambda done: self._saved(offsets, done))

    def _saved(self, offsets: CleanOffsets, done: asyncio.Future[None]) -> None:
        del self._saving[offsets]
        if not done.cancelled() and done.exception() is not None:
            log.error("the cleaner's checkpoint cannot be written: %s", done.exception())
        if offsets in self._save_again:
            self._save_again.discard(offsets)
            self._save(offsets)

    async def _forever(self) -> None:
        while True:
            await asyncio.sleep(self._setting(LOG_CLEANER_BACKOFF_MS) / 1000)
            try:
                while await self.clean_one():
                    pass
            except Exception:
                log.exception("the cleaner failed; it goes on after its break")

    async def clean_one(self) -> bool:
        """Compact the dirtiest log if one is due; return whether there was one."""
        found = await self._choose()
        if found is None:
            return False
        # Imported only when needed: a start has nothing to compact.
        from ottla.log.compaction.compact import CompactionError

        partition, part = found
        try:
            await self._clean(partition, part)
        except CompactionError as error:
            self._uncleanable.add(partition.name)
            log.error("%s cannot be compacted and is left as it is: %s", partition.name, error)
        except StorageError as error:
            self._partitions.storage_failed(partition, error)
            return False
        return True

    async def _choose(self) -> tuple[Partition, Cleanable] | None:
        now_ms = self._runtime.now_ms()
        partitions = self._partitions
        parts: dict[Partition, Cleanable] = {}
        for number, partition in enumerate(tuple(partitions.opened()), start=1):
            compacted = partition.log.config.compact and partition.name not in self._uncleanable
            if compacted and partitions.holds(partition) and _key(partition) not in partitions.moving:
                parts[partition] = cleanable(
                    partition.log,
                    self._offsets_of(partition).get(_key(partition)),
                    last_stable_offset=_lasting(partition),
                    now_ms=now_ms,
                )
            if number % limits.PARTITIONS_VISITED_PER_TURN == 0:
                await asyncio.sleep(0)
        self.counts.max_dirty_ratio = max((part.ratio for part in parts.values()), default=0.0)
        chosen = dirtiest(
            (partition, part, partition.log.config.min_cleanable_dirty_ratio)
            for partition, part in parts.items()
            if partitions.holds(partition)
        )
        return (chosen, parts[chosen]) if chosen is not None else None

    def _offsets_of(self, partition: Partition) -> CleanOffsets:
        directory = self._partitions.directory_of(_key(partition))
        assert directory is not None, "it is here"
        return self._clean_offsets[directory.path]

    async def _clean(self, partition: Partition, part: Cleanable) -> None:
        from ottla.log.compaction.compact import Compaction
        from ottla.log.compaction.offset_map import OffsetMap

        now_ms = self._runtime.now_ms
        compacted = partition.log
        compaction = Compaction(
            compacted,
            OffsetMap(self._setting(LOG_CLEANER_DEDUPE_BUFFER_SIZE), self._setting(LOG_CLEANER_IO_BUFFER_LOAD_FACTOR)),
            first_dirty_offset=part.first_dirty_offset,
            first_uncleanable_offset=part.first_uncleanable_offset,
            now_ms=now_ms(),
        )
        await self._drive(compaction.build_map())
        for group in compaction.groups():
            cleaned = await self._drive(compaction.rewrite(group))
            if not await self._swap(partition, compacted, compaction.swapping(cleaned, now_ms())):
                return
            self._on_swap(partition)
        offsets = self._offsets_of(partition)
        offsets.set(_key(partition), compaction.end_offset)
        self._save(offsets)
        self.counts.runs += 1
        self.counts.ended_ms = self._runtime.steady_ms()
        log.info("compacted %s up to offset %d", partition.name, compaction.end_offset)

    async def _swap(self, partition: Partition, compacted: Log, steps: Generator[Directory, None, bool]) -> bool:
        """Replace old segments by the rewritten ones; return whether that was done."""
        try:
            # The topic may be deleted by now, or moved to another directory; then the rewritten files go with the old
            # log.
            while self._partitions.holds(partition) and partition.log is compacted:
                try:
                    directory = next(steps)
                except StopIteration as end:
                    return bool(end.value)
                await self._runtime.in_worker(directory.sync)
            return False
        finally:
            steps.close()

    async def _drive(self, work: Generator[int, None, T]) -> T:
        """Run a generator step by step in a worker, sleeping as the throttle demands; return its result."""
        try:
            while True:
                step: int | _Ended[T] = await self._runtime.in_worker(_step, work)
                if not isinstance(step, int):
                    return step.result
                self.counts.read_bytes += step
                await asyncio.sleep(self._pause_ms(step) / 1000)
        finally:
            work.close()

    def _pause_ms(self, size_bytes: int) -> float:
        bytes_per_second = self._setting(LOG_CLEANER_IO_MAX_BYTES_PER_SECOND)
        if bytes_per_second != self._throttle_bytes:
            self._throttle_bytes = bytes_per_second
            self._throttle = Throttle(bytes_per_second)
        return max(self._throttle.wait_ms(size_bytes, self._runtime.loop.time() * 1000), 0.0)


class _Ended(NamedTuple, Generic[T]):
    """The end of a generator, with its result."""

    result: T


def _step(work: Generator[int, None, T]) -> int | _Ended[T]:
    """Do one step in the worker; return the bytes that it processed, or the end."""
    try:
        return next(work)
    except StopIteration as end:
        return _Ended(end.value)


def _key(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.index)


def _lasting(partition: Partition) -> int:
    """Return the offset up to which the log may be cleaned: a record is removed in favour of a newer one only if that
    is synced, so a loss of power cannot take both.
    """
    return min(partition.last_stable_offset, partition.log.recovery_point)
