"""Checkpoints: the offsets that the next start of a data directory begins from.

They are collected on the loop and written in a worker thread, since writing includes syncing. A collection has a
number, and an older one never replaces a newer one. DeleteRecords writes its log starts before anyone can see them:
Kafka may show deleted records again after a crash, we do not.

They know partitions by name (the files are Kafka's). One that is made anew under a name that they have, or will have
when a worker is done, must not begin where the other began, and lose what lies below, after a crash either. So its
directory has a note (`BEGUN_ANEW`) that they are not about it, until they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple

from ottla.log.files import checkpoint
from ottla.log.files.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.loop.workers import in_worker
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.pending_checkpoints import Offsets


class Collection(NamedTuple):
    """What one directory should remember, by the name of the file."""

    directory: DataDirectory
    number: int
    offsets: dict[str, Offsets]
    begun: dict[TopicPartition, object]  # who may be believed of when all of this is written

    def write(self) -> StorageError | None:
        """May run in a worker thread."""
        self.directory.disk.keep_reserve()
        try:
            for name, offsets in self.offsets.items():
                self.directory.write(name, offsets, self.number)
        except StorageError as error:
            return error
        return None


class Checkpoints:
    """`executor`: the workers that write them."""

    def __init__(self, partitions: Partitions, executor: Executor | None) -> None:
        self._partitions = partitions
        self._executor = executor
        self._pending = partitions.pending_checkpoints
        self._number = 0
        self._replicated: dict[str, Offsets] = {}  # by directory: what was last written of replicated partitions

    def collect(self, directory: DataDirectory) -> Collection:
        recovery = dict(directory.recovery_points)
        watermarks = dict(directory.high_watermarks)
        for name, partition in self._partitions.opened_in(directory):
            recovery[name] = partition.log.recovery_point
            watermarks[name] = partition.high_watermark
        self._pending.recovery_points[directory.path] = recovery
        offsets: dict[str, Offsets] = {
            checkpoint.RECOVERY_POINTS: recovery,
            checkpoint.LOG_STARTS: self._log_starts(directory),
            checkpoint.HIGH_WATERMARKS: watermarks,
        }
        return self._collection(directory, offsets, dict(directory.begun))

    def collect_high_watermarks(self, directory: DataDirectory) -> Collection | None:
        """Those that say more than the end of a log does, if they changed: replicas begin with them."""
        opened = list(self._partitions.opened_in(directory))
        replicated = {name: partition.high_watermark for name, partition in opened if not partition.alone}
        if replicated == self._replicated.get(directory.path, {}):
            return None
        self._replicated[directory.path] = replicated
        watermarks = directory.high_watermarks | {name: partition.high_watermark for name, partition in opened}
        return self._collection(directory, {checkpoint.HIGH_WATERMARKS: watermarks})

    def is_below(self, partition: Partition) -> bool:
        """Whether the recovery point of a log is below the one on disk, or on its way there."""
        name = TopicPartition(partition.topic, partition.index)
        directory = self._partitions.directory_of(name)
        if directory is None:
            return False
        coming = self._pending.recovery_points.get(directory.path, {}).get(name, 0)
        return partition.log.recovery_point < max(coming, directory.remembered_recovery_point(name))

    def _log_starts(self, directory: DataDirectory) -> dict[TopicPartition, int]:
        coming: dict[Partition, int] = {}
        for each in self._pending.log_starts:
            for partition, offset in each.items():
                coming[partition] = max(offset, coming.get(partition, 0))
        starts = dict(directory.log_starts)
        for name, partition in self._partitions.opened_in(directory):
            start = max(partition.log.log_start_offset, coming.get(partition, 0))
            if start > 0:
                starts[name] = start
        return starts

    def _collection(
        self, directory: DataDirectory, offsets: dict[str, Offsets], begun: dict[TopicPartition, object] | None = None
    ) -> Collection:
        self._number += 1
        return Collection(directory, self._number, offsets, begun or {})

    def written(self, collection: Collection, error: StorageError | None) -> Callable[[], None] | None:
        """A directory that cannot take its checkpoints is noted, and asked again at the next round. What is given back
        is called next, in any thread."""
        directory = collection.directory
        if error is None and not directory.offline:
            directory.failure = None
        elif error is not None:
            self._partitions.directory_failed(directory, error)
            return None
        return partial(directory.end_begun, collection.begun) if collection.begun else None

    def write_now(self) -> None:
        """All of them, in this thread."""
        for directory in self._partitions.directories:
            if not directory.offline:
                collection = self.collect(directory)
                make_last = self.written(collection, collection.write())
                if make_last is not None:
                    make_last()

    async def write(self, collection: Collection) -> StorageError | None:
        """In a worker; why it failed."""
        loop = asyncio.get_running_loop()
        error = await in_worker(loop, self._executor, collection.write)
        make_last = self.written(collection, error)
        if make_last is not None:
            await in_worker(loop, self._executor, make_last)
        return error

    def _coming_starts(self, directory: DataDirectory) -> Collection:
        """All that is known, where log starts alone would not be believed."""
        if directory.begun:
            return self.collect(directory)
        return self._collection(directory, {checkpoint.LOG_STARTS: self._log_starts(directory)})

    async def remember_log_starts(self, starts: Mapping[Partition, int]) -> None:
        """Puts the coming log starts of these partitions on disk. Raises KAFKA_STORAGE_ERROR.

        Who called moves them before anybody else has a turn: from here on the next collection does not know of them.
        """
        self._pending.log_starts.append(starts)
        try:
            directories = dict.fromkeys(
                self._partitions.directory_of(partition.topic_partition) for partition in starts
            )
            for directory in filter(None, directories):
                error = await self.write(self._coming_starts(directory))
                if error is not None:
                    raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        finally:
            self._pending.log_starts.remove(starts)
