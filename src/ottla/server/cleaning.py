"""Cleaner: compacts the dirtiest log, one at a time, in a worker thread, no faster than it is allowed to.

What a round touches on the loop is its beginning and the swap of each rewritten segment; everything between is file
work on closed segments. A log that cannot be read is set aside and left as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.log.clean import Cleanable, CleanOffsets, Throttle, cleanable, dirtiest
from ottla.log.compact import Cleaned, Compaction, CompactionError
from ottla.log.disk import StorageError
from ottla.log.offset_map import OffsetMap
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition

if TYPE_CHECKING:
    from ottla.server.node import Node

log = logging.getLogger(__name__)

_MORE = object()


class Cleaner:
    def __init__(self, loop: asyncio.AbstractEventLoop, node: Node) -> None:
        settings = node.configs.broker
        self._loop = loop
        self._node = node
        self._backoff_s = settings.get("log.cleaner.backoff.ms") / 1000
        self._throttle = Throttle(settings.get("log.cleaner.io.max.bytes.per.second"))
        self._map_bytes = settings.get("log.cleaner.dedupe.buffer.size")
        self._load_factor = settings.get("log.cleaner.io.buffer.load.factor")
        self._clean_offsets = {directory.path: CleanOffsets(directory.disk) for directory in node.directories}
        self._uncleanable: set[str] = set()
        self._task = loop.create_task(self._forever()) if settings.get("log.cleaner.enable") else None

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _forever(self) -> None:
        while True:
            await asyncio.sleep(self._backoff_s)
            try:
                while await self.clean_one():
                    pass
            except Exception:
                log.exception("the cleaner failed; it goes on after its break")

    async def clean_one(self) -> bool:
        """Compacts the dirtiest log if one is due; whether there was one."""
        found = self._choose()
        if found is None:
            return False
        partition, part = found
        try:
            await self._clean(partition, part)
        except CompactionError as error:
            self._uncleanable.add(partition.name)
            log.error("%s cannot be compacted and is left as it is: %s", partition.name, error)
        except StorageError as error:
            self._node.partitions.storage_failed(partition, error)
            return False
        return True

    def _choose(self) -> tuple[Partition, Cleanable] | None:
        now_ms = self._node.ports.now_ms()
        parts: dict[Partition, Cleanable] = {}
        for partition in self._node.partitions.opened():
            if partition.log.config.compact and partition.name not in self._uncleanable:
                parts[partition] = cleanable(
                    partition.log,
                    self._offsets_of(partition).get(_key(partition)),
                    last_stable_offset=partition.last_stable_offset,
                    now_ms=now_ms,
                )
        chosen = dirtiest(
            (partition, part, partition.log.config.min_cleanable_dirty_ratio) for partition, part in parts.items()
        )
        return (chosen, parts[chosen]) if chosen is not None else None

    def _offsets_of(self, partition: Partition) -> CleanOffsets:
        return self._clean_offsets[self._node.partitions.directory_of(_key(partition)).path]

    async def _clean(self, partition: Partition, part: Cleanable) -> None:
        now_ms = self._node.ports.now_ms
        compaction = Compaction(
            partition.log,
            OffsetMap(self._map_bytes, self._load_factor),
            first_dirty_offset=part.first_dirty_offset,
            first_uncleanable_offset=part.first_uncleanable_offset,
            now_ms=now_ms(),
        )
        await self._drive(compaction.build_map())
        for group in compaction.groups():
            cleaned: Cleaned = await self._drive(compaction.rewrite(group))
            # The topic may be gone by now; its files are then nobody's, and follow it.
            if self._node.partitions.get(partition.topic, partition.index) is not partition:
                return
            if not compaction.swap(cleaned, now_ms()):
                return
        self._offsets_of(partition).set(_key(partition), compaction.end_offset)
        log.info("compacted %s up to offset %d", partition.name, compaction.end_offset)

    async def _drive(self, work: Iterator[int]) -> Any:
        """Runs a generator step by step in a worker, sleeping as the throttle wants; what it returns."""
        running: asyncio.Future[Any] | None = None
        try:
            while True:
                running = asyncio.ensure_future(self._loop.run_in_executor(self._node.ports.executor, _step, work))
                result, size_bytes = await asyncio.shield(running)
                if result is not _MORE:
                    return result
                wait_ms = self._throttle.wait_ms(size_bytes, self._loop.time() * 1000)
                if wait_ms > 0:
                    await asyncio.sleep(wait_ms / 1000)
        except asyncio.CancelledError:
            if running is not None:
                await asyncio.wait([running])
            work.close()  # type: ignore[attr-defined]  # a generator
            raise


def _step(work: Iterator[int]) -> tuple[Any, int]:
    """One step in the worker: (_MORE, bytes) while there is more, (what it returned, 0) at its end."""
    try:
        return _MORE, next(work)
    except StopIteration as end:
        return end.value, 0


def _key(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.index)
