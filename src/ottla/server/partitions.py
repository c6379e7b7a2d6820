"""Partitions: the replicas this node holds, found by name or id, opened when first needed.

Topics come and go with the cluster's changes. After a clean stop a partition's files are not touched until somebody
asks for it (or housekeeping gets to it); after a crash all are recovered before the node serves. A partition whose
directory fails answers KAFKA_STORAGE_ERROR; all others go on, and it is tried again when it is asked for again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from ottla.cluster.entities import (
    Change,
    ConfigChanged,
    PartitionChanged,
    PartitionsAdded,
    PartitionState,
    Topic,
    TopicDeleted,
)
from ottla.cluster.state import ClusterState
from ottla.log import checkpoint
from ottla.log.closing import close_logs
from ottla.log.config import LogConfig
from ottla.log.disk import Directory, StorageError
from ottla.log.log import Log
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.model.resources import ResourceType
from ottla.replica.partition import Partition
from ottla.server.checkpoints import Checkpoints
from ottla.server.directories import DataDirectory
from ottla.server.removal import Doomed, Removal, mark_deleted, set_aside

log = logging.getLogger(__name__)

# What a recovery tells while it runs: partition, batches' bytes scanned so far, bytes to scan.
Progress = Callable[[TopicPartition, int, int], None]


class _Held:
    """The partitions of one topic: opened ones, and None for those nobody has asked for yet."""

    __slots__ = ("opened", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.opened: list[Partition | None] = []


class Partitions:
    def __init__(
        self,
        directories: Sequence[DataDirectory],
        config_of: Callable[[str], LogConfig],
        now_ms: Callable[[], int],
        fetch_max_bytes: int,
        *,
        all_usable: bool,
    ) -> None:
        self.directories = directories
        self._all_usable = all_usable  # whether every directory of the configuration is among them
        self.fetch_max_bytes = fetch_max_bytes
        self._config_of = config_of
        self._now_ms = now_ms
        self._by_name: dict[str, _Held] = {}
        self._by_id: dict[bytes, _Held] = {}
        self._place: dict[TopicPartition, DataDirectory] = {}  # without an entry: its directory could not be used
        self._unopened: dict[TopicPartition, None] = {}
        self.flushed_by_time: dict[Partition, None] = {}  # opened ones with a flush.ms
        self.removal = Removal()
        self.checkpoints = Checkpoints(self)
        # Told of a partition that was deleted or got other settings: whoever waits for it must look again.
        self.on_change: Callable[[Partition], None] = _ignore

    # Finding

    def find(self, topic: str, index: int) -> Partition:
        """The partition, opened. Raises UNKNOWN_TOPIC_OR_PARTITION or KAFKA_STORAGE_ERROR."""
        held = self._by_name.get(topic)
        if held is None or not 0 <= index < len(held.opened):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return held.opened[index] or self._open(held, index)

    def find_by_id(self, topic_id: bytes, index: int) -> Partition:
        held = self._by_id.get(topic_id)
        if held is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not 0 <= index < len(held.opened):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return held.opened[index] or self._open(held, index)

    def get(self, topic: str, index: int) -> Partition | None:
        """The partition, or None if there is none or it cannot be opened now."""
        try:
            return self.find(topic, index)
        except ApiError:
            return None

    def holds(self, partition: Partition) -> bool:
        """Whether this very partition is still here; its topic may have been deleted, or even made anew."""
        held = self._by_name.get(partition.topic)
        index = partition.index
        return held is not None and index < len(held.opened) and held.opened[index] is partition

    def opened(self) -> Iterator[Partition]:
        for held in tuple(self._by_name.values()):
            for partition in held.opened:
                if partition is not None:
                    yield partition

    def opened_in(self, directory: DataDirectory) -> Iterator[tuple[TopicPartition, Partition]]:
        for name in directory.partitions:
            partition = self._by_name[name.topic].opened[name.partition]
            if partition is not None:
                yield name, partition

    def directory_of(self, partition: TopicPartition) -> DataDirectory | None:
        return self._place.get(partition)

    # Opening

    def recover(self, progress: Progress) -> None:
        """Opens everything in directories that were not closed cleanly."""
        for partition in tuple(self._unopened):
            directory = self._place.get(partition)
            if directory is not None and not directory.clean and directory.disk.exists(_name(partition)):
                held = self._by_name[partition.topic]
                try:
                    self._open(held, partition.partition, partial(progress, partition))
                except ApiError as error:
                    log.error("%s-%d cannot be opened: %s", *partition, error.message)

    def open_some(self, count: int) -> int:
        """Opens up to `count` partitions nobody asked for yet; how many are left."""
        for partition in tuple(islice(self._unopened, count)):
            if self.get(*partition) is None:  # its directory fails: asked for again by its next client
                self._unopened.pop(partition, None)
        return len(self._unopened)

    def _open(self, held: _Held, index: int, progress: Callable[[int, int], None] | None = None) -> Partition:
        name = TopicPartition(held.topic.name, index)
        directory = self._place.get(name)
        if directory is None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the data directory of {_name(name)} is not available")
        state = held.topic.partitions[index]
        home = Directory(directory.disk, _name(name))
        try:
            identity = _identity_of(home)
            if identity not in (None, held.topic.id):
                set_aside(Directory(directory.disk, home.path), identity)
                identity = None
                directory.forget(name)
                directory.partitions[name] = None
            opened = Log.open(
                directory.disk,
                _name(name),
                self._config_of(name.topic),
                now_ms=self._now_ms(),
                recovery_point=directory.recovery_points.get(name, 0),
                log_start_offset=directory.log_starts.get(name, 0),
                clean=directory.clean,
                progress=progress,
            )
            if identity is None:
                checkpoint.write_partition_metadata(opened.directory, held.topic.id, sync=False)
            partition = Partition(name.topic, index, opened, leader_epoch=state.leader_epoch)
        except StorageError as error:
            directory.fail(error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        held.opened[index] = partition
        self._note_flush_ms(partition)
        self._unopened.pop(name, None)
        directory.recovery_points.pop(name, None)
        directory.log_starts.pop(name, None)
        return partition

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        if self.holds(partition):
            self._place[TopicPartition(partition.topic, partition.index)].fail(error)

    # Following the cluster

    def load(self, state: ClusterState) -> None:
        """Takes over the topics that exist; nothing is opened yet."""
        for topic in state.topics.values():
            self._add(topic, topic.partitions, existing=True)
        for directory in self.directories:
            for name in directory.deleted:
                self.removal.add(0, Doomed(Directory(directory.disk, name)))
            for partition in directory.found:
                if partition not in directory.partitions:
                    self._set_aside_stray(Directory(directory.disk, _name(partition)))
            directory.deleted, directory.found = [], {}

    def _set_aside_stray(self, home: Directory) -> None:
        try:
            set_aside(home, _identity_of(home) or NO_ID)
        except StorageError as error:
            log.warning("%s", error)

    def apply(self, changes: Sequence[Change]) -> None:
        reconfigured: dict[str, None] = {}  # once each, however many of its settings changed
        for change in changes:
            match change:
                case PartitionsAdded(topic, states):
                    self._add(topic, states)
                case TopicDeleted(topic):
                    self._delete(topic)
                case ConfigChanged(resource, _, _) if resource.type == ResourceType.TOPIC:
                    reconfigured[resource.name] = None
                case ConfigChanged(resource, _, _) if resource.type == ResourceType.BROKER:
                    reconfigured |= dict.fromkeys(self._by_name)
                case PartitionChanged(topic, _, new):
                    held = self._by_name.get(topic.name)
                    partition = held.opened[new.index] if held is not None else None
                    if partition is not None:
                        partition.lead(new.leader_epoch)
        for name in reconfigured:
            self.configure(name)

    def configure(self, topic: str) -> None:
        """Hands a topic's present settings to its opened partitions."""
        held = self._by_name.get(topic)
        if held is not None and any(held.opened):
            config = self._config_of(topic)
            for partition in held.opened:
                if partition is not None:
                    partition.configure(config)
                    self._note_flush_ms(partition)
                    self.on_change(partition)

    def _note_flush_ms(self, partition: Partition) -> None:
        if partition.log.config.flush_ms < limits.INT64_MAX:
            self.flushed_by_time[partition] = None
        else:
            self.flushed_by_time.pop(partition, None)

    def _add(self, topic: Topic, states: Iterable[PartitionState], *, existing: bool = False) -> None:
        held = self._by_name.get(topic.name)
        if held is None:
            held = self._by_name[topic.name] = self._by_id[topic.id] = _Held(topic)
        for state in states:
            name = TopicPartition(topic.name, state.index)
            held.opened.append(None)
            directory = self._choose_directory(name, topic.id, existing)
            if directory is not None:
                directory.partitions[name] = None
                self._place[name] = directory
                self._unopened[name] = None

    def _choose_directory(self, name: TopicPartition, topic_id: bytes, existing: bool) -> DataDirectory | None:
        """Where its files are; a new partition goes to the working directory that holds the fewest.

        One that existed before and is found nowhere while a directory is missing may lie there: None, rather than
        beginning it anew and empty.
        """
        if len(self.directories) == 1 and self._all_usable:
            return self.directories[0]
        if existing:
            found = [directory for directory in self.directories if name in directory.found]
            # An older topic of that name may have left its files where they could not be removed.
            own = [each for each in found if _identity_of(Directory(each.disk, _name(name))) == topic_id]
            if found or not self._all_usable:
                return next(iter(own or found), None)
        working = [directory for directory in self.directories if directory.failure is None] or self.directories
        return min(working, key=lambda directory: len(directory.partitions))

    def _delete(self, topic: Topic) -> None:
        held = self._by_name.pop(topic.name, None)
        if held is None:
            return
        del self._by_id[topic.id]
        for index, partition in enumerate(held.opened):
            name = TopicPartition(topic.name, index)
            self._unopened.pop(name, None)
            directory = self._place.pop(name, None)
            if directory is not None:
                directory.forget(name)
                try:
                    self._retire(directory, name, topic, partition)
                except StorageError as error:
                    log.warning("%s-%d: %s", *name, error)
        for partition in held.opened:
            if partition is not None:
                self.flushed_by_time.pop(partition, None)
                self.on_change(partition)

    def _retire(self, directory: DataDirectory, name: TopicPartition, topic: Topic, opened: Partition | None) -> None:
        """Out of the way at once, so that a new topic may have the name; removed later."""
        if opened is not None:
            home, config = opened.log.directory, opened.log.config
        elif directory.disk.exists(_name(name)):
            home, config = Directory(directory.disk, _name(name)), self._config_of(topic.name)
        else:
            return
        mark_deleted(home, topic.id)
        doomed = Doomed(home, opened.log if opened is not None else None)
        self.removal.add(self._now_ms() + config.file_delete_delay_ms, doomed)

    def close(self) -> None:
        """A clean stop: everything flushed, checkpointed, and marked so. Deleted topics go at the next start."""
        closed = []
        for directory in self.directories:
            try:
                close_logs(directory.disk, [partition.log for _, partition in self.opened_in(directory)])
                closed.append(directory)
            except StorageError as error:
                directory.fail(error)
        self.checkpoints.write_now()
        for directory in closed:
            directory.mark_clean()


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _ignore(_: Partition) -> None:
    """Until the node is listening."""


def _identity_of(home: Directory) -> bytes | None:
    """The topic id in a partition's directory; None also when a crash left the file empty: the cluster knows it."""
    try:
        return checkpoint.read_partition_metadata(home)
    except checkpoint.CheckpointError:
        return None
