"""Checkpoints: the offsets that the next start of a data directory begins from.

They are collected on the loop and written in a worker thread, since writing includes syncing. A collection has a
number, and an older one never replaces a newer one. DeleteRecords writes its log starts before anyone can see them:
Kafka may show deleted records again after a crash, we do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, NamedTuple

from ottla.log import checkpoint
from ottla.log.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.directories import DataDirectory
from ottla.server.workers import in_worker

if TYPE_CHECKING:
    from ottla.replica.partition import Partition
    from ottla.server.partitions import Partitions

Offsets = Mapping[TopicPartition, int]


class Collection(NamedTuple):
    """What one directory should remember, by the name of the file."""

    directory: DataDirectory
    number: int
    offsets: dict[str, Offsets]

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
    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._number = 0
        # Log starts that are about to be, of all who wait for them. Of partitions, not names: one may be made anew.
        self._coming: list[Mapping[Partition, int]] = []
        self._collected: dict[str, Offsets] = {}  # by directory: the recovery points that are or will be on disk
        self._replicated: dict[str, Offsets] = {}  # by directory: what was last written of replicated partitions

    def collect(self, directory: DataDirectory) -> Collection:
        recovery = dict(directory.recovery_points)
        watermarks = dict(directory.high_watermarks)
        for name, partition in self._partitions.opened_in(directory):
            recovery[name] = partition.log.recovery_point
            watermarks[name] = partition.high_watermark
        self._collected[directory.path] = recovery
        return self._collection(
            directory,
            {
                checkpoint.RECOVERY_POINTS: recovery,
                checkpoint.LOG_STARTS: self._log_starts(directory),
                checkpoint.HIGH_WATERMARKS: watermarks,
            },
        )

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
        coming = self._collected.get(directory.path, {}).get(name, 0)
        return partition.log.recovery_point < max(coming, directory.remembered_recovery_point(name))

    def is_about_to_remember(self, name: TopicPartition) -> bool:
        """Whether the log start of a partition of that name is being written: it may be of one that was deleted."""
        return any(partition.topic_partition == name for starts in self._coming for partition in starts)

    def _log_starts(self, directory: DataDirectory) -> dict[TopicPartition, int]:
        coming: dict[Partition, int] = {}
        for each in self._coming:
            for partition, offset in each.items():
                coming[partition] = max(offset, coming.get(partition, 0))
        starts = dict(directory.log_starts)
        for name, partition in self._partitions.opened_in(directory):
            start = max(partition.log.log_start_offset, coming.get(partition, 0))
            if start > 0:
                starts[name] = start
        return starts

    def _collection(self, directory: DataDirectory, offsets: dict[str, Offsets]) -> Collection:
        self._number += 1
        return Collection(directory, self._number, offsets)

    def written(self, directory: DataDirectory, error: StorageError | None) -> None:
        """A directory that cannot take its checkpoints is noted, and asked again at the next round."""
        if error is None and not directory.offline:
            directory.failure = None
        elif error is not None:
            self._partitions.directory_failed(directory, error)

    def write_now(self) -> None:
        """All of them, in this thread."""
        for directory in self._partitions.directories:
            if not directory.offline:
                self.written(directory, self.collect(directory).write())

    async def remember_log_starts(self, starts: Mapping[Partition, int], executor: Executor | None) -> None:
        """Puts the coming log starts of these partitions on disk. Raises KAFKA_STORAGE_ERROR.

        Who called moves them before anybody else has a turn: from here on the next collection does not know of them.
        """
        self._coming.append(starts)
        try:
            loop = asyncio.get_running_loop()
            directories = dict.fromkeys(
                self._partitions.directory_of(partition.topic_partition) for partition in starts
            )
            for directory in filter(None, directories):
                collection = self._collection(directory, {checkpoint.LOG_STARTS: self._log_starts(directory)})
                error = await in_worker(loop, executor, collection.write)
                if error is not None:
                    self._partitions.directory_failed(directory, error)
                    raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        finally:
            self._coming.remove(starts)
