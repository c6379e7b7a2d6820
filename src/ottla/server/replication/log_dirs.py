"""LogDirs: moves replicas from one data directory of this node to another (AlterReplicaLogDirs).

The target directory gets a future replica, `topic-0.….-future`, which is filled from the current one while that goes on
serving. Once it has caught up, the controller is told the new directory, and in one step, in which nothing is appended,
the future replica replaces the current one. Moves are made one after the other, no faster than
replica.alter.log.dirs.io.max.bytes.per.second, with their file work in a worker thread; a restart continues them.

When the current replica is truncated meanwhile, so is the future one: everything above the high watermark that was
known before the truncation, and whatever the leader epochs show to be different.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.log.files.disk import Directory, StorageError
from ottla.log.files.names import FUTURE_DIRECTORY
from ottla.log.log import Log
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.replica.partition import Partition
from ottla.server.loop.runtime import Runtime
from ottla.server.replication.assignments import Assignments
from ottla.server.replication.quotas import Quota
from ottla.server.replication.session import Key
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.directory_choice import identity_of
from ottla.server.storage.removal import Doomed, mark_deleted
from ottla.server.storage.storage import Storage

log = logging.getLogger(__name__)

_NAME_CHARS_MAX = 255
_PAUSE_MS = 50


class _SourceError(Exception):
    """An error of the disk from which a replica is being moved."""

    def __init__(self, error: StorageError) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def _at_source() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise _SourceError(error) from error


class Move:
    """The move of one replica."""

    __slots__ = ("copy", "cuts", "is_leaving", "key", "name", "partition", "safe_offset", "source", "target")

    def __init__(
        self,
        name: TopicPartition,
        key: Key,
        partition: Partition,
        source: DataDirectory,
        target: DataDirectory,
        copy: Log,
    ) -> None:
        self.name = name
        self.key = key
        self.partition = partition
        self.source = source
        self.target = target
        self.copy = copy
        self.cuts = partition.cuts
        # Below this offset the copy is correct despite any truncation: these records were committed at the last check.
        self.safe_offset = min(copy.next_offset, partition.high_watermark)
        self.is_leaving = False  # whether the controller was told the target directory


class LogDirs:
    def __init__(
        self,
        runtime: Runtime,
        storage: Storage,
        assignments: Assignments,
        quota: Quota,
    ) -> None:
        self._loop = runtime.loop
        self._runtime = runtime
        self._partitions = storage.partitions
        self._syncer = storage.syncer
        self._assignments = assignments
        self._quota = quota
        self._moves: dict[TopicPartition, Move] = {}
        self._task: asyncio.Task[None] | None = None

    # --- for the node and the handlers

    def start(self) -> None:
        """Continue the moves of the last run."""
        for directory in self._partitions.directories:
            for name, path in directory.futures.items():
                home = Directory(directory.disk, path)
                partition = self._partitions.get(*name)
                topic_id = self._partitions.topic_id(name.topic)
                if (
                    partition is None
                    or topic_id is None
                    or name in self._moves
                    or self._is_in(name, directory)
                    # The topic may have been created anew under the same name: only the topic id tells.
                    or (identity_of(home) or _id_in(path)) != topic_id
                ):
                    self._partitions.removal.add(0, Doomed(home))
                    continue
                try:
                    self._begin(name, partition, directory, path)
                except StorageError as error:
                    self._partitions.directory_failed(directory, error)
            directory.futures.clear()

    def move(self, name: TopicPartition, path: str) -> ErrorCode:
        """Start moving a replica to the directory at `path`; a move to another directory that is under way is
        abandoned.
        """
        partitions = self._partitions
        target = next((each for each in partitions.directories if each.path == path), None)
        if len(f"{name}.{'0' * 32}{FUTURE_DIRECTORY}") > _NAME_CHARS_MAX:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if target is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if target.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if target.id in partitions.cordoned():
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        moving = self._moves.get(name)
        if moving is not None and moving.target is not target:
            self._abandon(moving)
            moving = None
        try:
            partition = partitions.find(*name)
        except ApiError as error:
            if error.code == ErrorCode.KAFKA_STORAGE_ERROR:
                return error.code
            partitions.prefer(name, target)
            elsewhere = error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            return ErrorCode.REPLICA_NOT_AVAILABLE if elsewhere else error.code
        if moving is not None or self._is_in(name, target):
            return ErrorCode.NONE
        if any(directory.failure is not None for directory in partitions.directories):
            return ErrorCode.KAFKA_STORAGE_ERROR  # the replica might be in that directory already
        topic_id = partitions.topic_id(name.topic)
        assert topic_id is not None, "the partition was found"
        try:
            self._begin(name, partition, target, f"{name}.{topic_id.hex()}{FUTURE_DIRECTORY}")
        except StorageError as error:
            partitions.directory_failed(target, error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def futures_in(self, directory: DataDirectory) -> list[Move]:
        return [move for move in self._moves.values() if move.target is directory]

    def is_leaving(self, key: Key) -> bool:
        """Return whether the controller already knows the target directory of the replica."""
        return any(move.key == key and move.is_leaving for move in self._moves.values())

    def forget(self, key: Key) -> None:
        """Abandon the move of a replica that was removed."""
        for move in [each for each in self._moves.values() if each.key == key]:
            self._abandon(move)

    async def close(self) -> None:
        """Stop; unfinished moves are left as they are, for the next start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for move in self._moves.values():
            try:
                move.copy.close()
            except StorageError as error:
                log.warning("%s: %s", move.name, error)

    # --- moving

    def _is_in(self, name: TopicPartition, directory: DataDirectory) -> bool:
        return self._partitions.directory_of(name) is directory

    def _begin(self, name: TopicPartition, partition: Partition, target: DataDirectory, path: str) -> None:
        topic_id = self._partitions.topic_id(name.topic)
        assert topic_id is not None, "it exists"
        source = self._partitions.directory_of(name)
        assert source is not None, "it is here"
        present, now_ms = partition.log, self._runtime.now_ms()
        start = present.log_start_offset
        copy = Log.open(
            target.disk,
            path,
            present.config,
            now_ms=now_ms,
            log_start_offset=start,
            clean=False,
            topic_id=topic_id,
            on_roll=partition.rolled,
            may_wait=partition.uses,
        )
        self._moves[name] = Move(name, Key(topic_id, name.partition), partition, source, target, copy)
        self._partitions.moving.add(name)
        log.info("%s moves to %s", name, target.path)
        if self._task is None:
            self._task = self._loop.create_task(self._make_moves())

    def _abandon(self, move: Move) -> None:
        if self._moves.get(move.name) is not move:
            return
        del self._moves[move.name]
        self._partitions.moving.discard(move.name)
        try:
            mark_deleted(move.copy.directory, move.key.topic_id)
        except StorageError as error:
            log.warning("%s", error)
        delay_ms = move.copy.config.file_delete_delay_ms
        doomed = Doomed(move.copy.directory, move.copy)
        self._partitions.removal.add(self._runtime.steady_ms() + delay_ms, doomed)
        if move.is_leaving:
            here = self._partitions.directory_of(move.name)
            if here is not None:
                self._assignments.tell(move.key, here.id)

    async def _make_moves(self) -> None:
        try:
            while self._moves:
                move = next(iter(self._moves.values()))
                try:
                    await self._make(move)
                except _SourceError as failed:
                    self._abandon(move)
                    self._partitions.directory_failed(move.source, failed.error)
                except StorageError as error:
                    self._abandon(move)
                    self._partitions.directory_failed(move.target, error)
                except Exception:
                    log.exception("%s cannot be moved to %s", move.name, move.target.path)
                    self._abandon(move)
        finally:
            self._task = None

    def _is_on(self, move: Move) -> bool:
        return self._moves.get(move.name) is move and self._partitions.holds(move.partition)

    async def _make(self, move: Move) -> None:
        while await self._copy_some(move):
            pass
        if not self._is_on(move):
            return
        move.is_leaving = True
        if not await self._assignments.told(move.key, move.target.id):
            self._abandon(move)
            return
        while self._is_on(move):
            while await self._copy_some(move):
                pass
            await self._runtime.in_worker(move.copy.flush)
            if await self._finish(move):
                return
            await asyncio.sleep(_PAUSE_MS / 1000)

    async def _finish(self, move: Move) -> bool:
        """Copy the last records and replace the current replica; False if it has to be tried again.

        The current replica is not synced meanwhile: everything that counts as synced there must be synced in the copy,
        too.
        """
        partition = move.partition
        if not self._syncer.hold(partition):
            return False
        try:
            while self._is_on(move) and _is_less_durable(move.copy, partition.log):
                await self._copy_piece(move)
                await self._runtime.in_worker(move.copy.flush)
            if not self._is_on(move) or not self._take_place(move):
                return False
        finally:
            self._syncer.let_go(partition)
        with _at_source():
            await self._runtime.in_worker(move.source.disk.sync_directory, "")
        await self._runtime.in_worker(move.target.disk.sync_directory, "")
        return True

    async def _copy_some(self, move: Move) -> bool:
        """Copy the next piece within the quota; False when the copy has caught up or the move was abandoned."""
        if not self._is_on(move):
            return False
        if self._quota.is_exceeded:
            await asyncio.sleep(_PAUSE_MS / 1000)
            return True
        return await self._copy_piece(move)

    async def _copy_piece(self, move: Move) -> bool:
        data = await self._read(move)
        if not data or not self._is_on(move):
            return False
        if move.cuts == move.partition.cuts:
            now_ms = self._runtime.now_ms()
            await self._runtime.in_worker(move.copy.append_replicated, data, limits.INT32_MAX, now_ms)
            self._quota.used(len(data))
        return True

    async def _read(self, move: Move) -> bytes:
        self._follow_cuts(move)
        source, copy = move.partition.log, move.copy
        with _at_source():
            fetched = source.read(copy.next_offset, limits.LOG_DIR_COPY_BYTES, max_offset=source.next_offset)
            if fetched.slice is None:
                return b""
            return await self._runtime.in_worker(fetched.slice.read)

    def _follow_cuts(self, move: Move) -> None:
        """Truncate the copy to where it agrees with the source."""
        partition, copy = move.partition, move.copy
        source, now_ms = partition.log, self._runtime.now_ms()
        if move.cuts != partition.cuts:
            move.cuts = partition.cuts
            copy.truncate_to(min(move.safe_offset, source.next_offset, copy.next_offset), now_ms=now_ms)
        while copy.next_offset > copy.log_start_offset:
            epoch, end = source.epoch_end(copy.epochs.latest)
            if epoch == copy.epochs.latest and end >= copy.next_offset:
                break
            known, own_end = copy.epoch_end(epoch)
            cut = min(own_end, end) if known == epoch else own_end
            copy.truncate_to(cut if 0 <= cut < copy.next_offset else copy.log_start_offset, now_ms=now_ms)
        if copy.next_offset < source.log_start_offset or copy.next_offset > source.next_offset:
            copy.truncate_fully_and_start_at(source.log_start_offset, now_ms=now_ms)
        elif copy.log_start_offset < source.log_start_offset:
            copy.advance_log_start(source.log_start_offset)
        move.safe_offset = min(copy.next_offset, partition.high_watermark)

    def _take_place(self, move: Move) -> bool:
        """Copy the last records and replace the current replica in one step; False if it has to be tried again."""
        partition = move.partition
        self._follow_cuts(move)
        source, copy = partition.log, move.copy
        while copy.next_offset < source.next_offset:
            with _at_source():
                fetched = source.read(copy.next_offset, limits.LOG_DIR_COPY_BYTES, max_offset=source.next_offset)
                records = b"" if fetched.slice is None else fetched.slice.read()
            if not records:
                break
            copy.append_replicated(records, LeaderEpoch(limits.INT32_MAX), self._runtime.now_ms())
        if _is_less_durable(copy, source):
            return False
        copy.next_offset = source.next_offset
        self._partitions.move(partition, move.target, copy)
        del self._moves[move.name]
        self._partitions.moving.discard(move.name)
        log.info("%s is in %s now", move.name, move.target.path)
        return True


def _is_less_durable(copy: Log, source: Log) -> bool:
    """Return whether some records are known to be synced in `source` and not in `copy`."""
    start = max(copy.recovery_point, source.log_start_offset)
    end = min(source.recovery_point, source.next_offset)
    with _at_source():
        return start < end and source.read(start, 1, max_offset=end).slice is not None


def _id_in(path: str) -> bytes | None:
    """Return the topic id in the directory name of a future replica; Kafka puts a random number there."""
    try:
        return bytes.fromhex(path.removesuffix(FUTURE_DIRECTORY).rpartition(".")[2])
    except ValueError:
        return None
