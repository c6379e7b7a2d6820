"""Checkpoints: the files with the offsets from which the next start of a data directory begins.

The offsets are collected on the loop and written in a worker thread, because writing includes syncing. Each collection
has a number, and an older collection never replaces a newer one. DeleteRecords writes the new log start offsets before
they become visible: Kafka may show deleted records again after a crash, Ottla does not.

The files name partitions by topic name and index (their format is Kafka's). A partition that is created anew under a
name for which the files have offsets, or will have when a worker is done, must not begin at the old offsets, not even
after a crash, since it would lose its records below them. So its directory gets a marker file (`BEGUN_ANEW`), which
says that the checkpoints do not apply to it, until they contain its own offsets.
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
    """The offsets that one directory should store, by the name of the checkpoint file."""

    directory: DataDirectory
    number: int
    offsets: dict[str, Offsets]
    begun: dict[TopicPartition, object]  # partitions whose marker files can go when all files are written

    def write(self) -> StorageError | None:
        """Write the files; may run in a worker thread."""
        self.directory.disk.keep_reserve()
        try:
            for name, offsets in self.offsets.items():
                self.directory.write(name, offsets, self.number)
        except StorageError as error:
            return error
        return None


class Checkpoints:
    """`executor` has the worker threads that write the files."""

    def __init__(self, partitions: Partitions, executor: Executor | None) -> None:
        self._partitions = partitions
        self._executor = executor
        self._pending = partitions.pending_checkpoints
        self._number = 0
        # by directory: the high watermarks of replicated partitions as last written
        self._replicated: dict[str, Offsets] = {}

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
        """Collect the high watermarks if those of replicated partitions changed; others equal the log end."""
        opened = list(self._partitions.opened_in(directory))
        replicated = {name: partition.high_watermark for name, partition in opened if not partition.alone}
        if replicated == self._replicated.get(directory.path, {}):
            return None
        self._replicated[directory.path] = replicated
        watermarks = directory.high_watermarks | {name: partition.high_watermark for name, partition in opened}
        return self._collection(directory, {checkpoint.HIGH_WATERMARKS: watermarks})

    def is_below(self, partition: Partition) -> bool:
        """Return whether the recovery point of a log is below the one that is on disk or being written."""
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
        """Record the outcome of a write; a directory that cannot be written is marked as failed and tried again next
        round.

        Return work that the caller must do next, in any thread, if there is some.
        """
        directory = collection.directory
        if error is None and not directory.offline:
            directory.failure = None
        elif error is not None:
            self._partitions.directory_failed(directory, error)
            return None
        return partial(directory.end_begun, collection.begun) if collection.begun else None

    def write_now(self) -> None:
        """Write the checkpoints of all directories, in this thread."""
        for directory in self._partitions.directories:
            if not directory.offline:
                collection = self.collect(directory)
                make_last = self.written(collection, collection.write())
                if make_last is not None:
                    make_last()

    async def write(self, collection: Collection) -> StorageError | None:
        """Write a collection in a worker; return the error if that failed."""
        loop = asyncio.get_running_loop()
        error = await in_worker(loop, self._executor, collection.write)
        make_last = self.written(collection, error)
        if make_last is not None:
            await in_worker(loop, self._executor, make_last)
        return error

    def _coming_starts(self, directory: DataDirectory) -> Collection:
        """Collect the log starts, or all offsets if some partitions have a marker that the checkpoints do not apply to
        them.
        """
        if directory.begun:
            return self.collect(directory)
        return self._collection(directory, {checkpoint.LOG_STARTS: self._log_starts(directory)})

    async def remember_log_starts(self, starts: Mapping[Partition, int]) -> None:
        """Write the new log start offsets of these partitions to disk. Raises KAFKA_STORAGE_ERROR.

        The caller must move the log starts in the same turn of the loop, because later collections take them from the
        logs.
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
