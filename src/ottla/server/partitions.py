"""Partitions: the replicas this node holds, found by name or id, opened when first needed.

Topics come and go with the cluster's changes, and so do replicas: one that is assigned elsewhere from now on is
removed here. A partition that exists but has no replica here answers NOT_LEADER_OR_FOLLOWER. After a clean stop a
partition's files are not touched until somebody asks for it (or housekeeping gets to it); after a crash all are
recovered before the node serves (`recovery`).

A partition whose directory fails answers KAFKA_STORAGE_ERROR; all others go on. A node that is alone tries it again
when it is asked for again. In a cluster the directory is offline until the next start, as with Kafka, and others take
the lead: a disk that comes and goes would take it to and fro.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from ottla.log.closing import close_logs
from ottla.log.config import LogConfig
from ottla.log.disk import DamagedError, Directory, StorageError
from ottla.log.log import Log
from ottla.log.ours import is_partition
from ottla.log.recover import Progress
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.model.resources import ResourceType
from ottla.replica.partition import Partition
from ottla.replica.terms import Terms
from ottla.server.checkpoints import Checkpoints
from ottla.server.directories import DataDirectory
from ottla.server.followers import Followers
from ottla.server.opening import Opening
from ottla.server.placing import assigned_directory, choose_directory, identity_of, set_stray_aside, settle_futures
from ottla.server.removal import Doomed, Removal, Retirement, mark_deleted, set_aside

log = logging.getLogger(__name__)


class _Held:
    """A topic of the cluster, and those of its partitions that are opened here."""

    __slots__ = ("opened", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.opened: dict[int, Partition] = {}


class Partitions:
    def __init__(
        self,
        directories: Sequence[DataDirectory],
        config_of: Callable[[str], LogConfig],
        now_ms: Callable[[], int],
        fetch_max_bytes: int,
        *,
        all_usable: bool,
        node_id: int,
    ) -> None:
        self.directories = directories
        self._all_usable = all_usable  # whether every directory of the configuration is among them
        self.fetch_max_bytes = fetch_max_bytes
        self.node_id = node_id
        self._config_of = config_of
        self._now_ms = now_ms
        self._state = ClusterState()
        self._by_name: dict[str, _Held] = {}  # all topics of the cluster
        self._by_id: dict[bytes, _Held] = {}
        self._place: dict[TopicPartition, DataDirectory] = {}  # of the replicas that are here and can be used
        self._unopened: dict[TopicPartition, None] = {}
        self.recovers_late = False  # whether somebody looks after `unrecovered`: the loop does not recover by itself
        self.unrecovered: dict[TopicPartition, None] = {}
        self.flushed_by_time: dict[Partition, None] = {}  # opened ones with a flush.ms
        self.followers = Followers(node_id)  # what replicas know of the world around them, and whom they tell
        self._preferred: dict[TopicPartition, DataDirectory] = {}  # where replicas that will come were told to go
        self.removal = Removal()
        self.retirement = Retirement(self.removal)
        self.checkpoints = Checkpoints(self)
        # Told of a partition that was deleted or got another role or settings: whoever waits for it must look again.
        self.on_change: Callable[[Partition], None] = _ignore
        # Told of one whose end another leader's history took the place of.
        self.on_cut: Callable[[Partition], None] = _ignore
        self.cordoned: Callable[[], Sequence[bytes]] = tuple  # the ids of directories that take no new replicas
        self.on_offline: Callable[[DataDirectory], None] = _ignore

    # Finding

    def find(self, topic: str, index: int) -> Partition:
        """The partition, opened. Raises UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR."""
        held = self._by_name.get(topic)
        if held is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return held.opened.get(index) or self._find_closed(held, index)

    def find_by_id(self, topic_id: bytes, index: int) -> Partition:
        held = self._by_id.get(topic_id)
        if held is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return held.opened.get(index) or self._find_closed(held, index)

    def _find_closed(self, held: _Held, index: int) -> Partition:
        states = held.topic.partitions
        if not 0 <= index < len(states):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.node_id not in states[index].replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._open(held, index)

    def get(self, topic: str, index: int) -> Partition | None:
        """The partition, or None if it is not here or cannot be opened now."""
        try:
            return self.find(topic, index)
        except ApiError:
            return None

    def holds(self, partition: Partition) -> bool:
        """Whether this very partition is still here; its topic may have been deleted, or even made anew."""
        held = self._by_name.get(partition.topic)
        return held is not None and held.opened.get(partition.index) is partition

    def opened(self) -> Iterator[Partition]:
        for held in tuple(self._by_name.values()):
            yield from tuple(held.opened.values())

    def if_opened(self, topic: str | bytes, index: int) -> Partition | None:
        """The partition if it is open; its topic by name or id."""
        held = self._by_id.get(topic) if isinstance(topic, bytes) else self._by_name.get(topic)
        return None if held is None else held.opened.get(index)

    def opened_in(self, directory: DataDirectory) -> Iterator[tuple[TopicPartition, Partition]]:
        for name in directory.partitions:
            partition = self._by_name[name.topic].opened.get(name.partition)
            if partition is not None:
                yield name, partition

    def directory_of(self, partition: TopicPartition) -> DataDirectory | None:
        return self._place.get(partition)

    def topic_id(self, topic: str) -> bytes | None:
        return None if (held := self._by_name.get(topic)) is None else held.topic.id

    # Opening

    @property
    def has_unopened(self) -> bool:
        """Whether any of the partitions here was not opened yet."""
        return bool(self._unopened)

    def unclean(self) -> dict[DataDirectory, list[TopicPartition]]:
        """What is not open yet and lies in directories that were not closed cleanly."""
        found: dict[DataDirectory, list[TopicPartition]] = {}
        for name in self._unopened:
            directory = self._place.get(name)
            if directory is not None and not directory.clean and directory.disk.exists(str(name)):
                found.setdefault(directory, []).append(name)
        return found

    def open_some(self, count: int) -> int:
        """Opens up to `count` partitions nobody asked for yet; how many are left."""
        for name in tuple(islice(self._unopened, count)):
            if self.get(*name) is None:  # its directory fails: asked for again by its next client
                self._unopened.pop(name, None)
        return len(self._unopened)

    def _open(self, held: _Held, index: int) -> Partition:
        name = TopicPartition(held.topic.name, index)
        place = self._place.get(name)
        if self.recovers_late and place is not None and not place.clean and place.disk.exists(str(name)):
            self.unrecovered[name] = None
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} has yet to be recovered")
        opening = self.opening(name)
        try:
            return self.take_over(name, opening.open())
        except StorageError as error:
            raise self.not_opened(name, error) from error

    def opening(self, name: TopicPartition, progress: Progress | None = None) -> Opening:
        """What opens the partition. Raises KAFKA_STORAGE_ERROR."""
        directory = self._place.get(name)
        if directory is None or directory.offline or name in directory.damaged:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the data of {name} are not available")
        topic_id = self._by_name[name.topic].topic.id
        try:
            is_known = self._settle_home(directory, name, topic_id)
        except StorageError as error:
            raise self.not_opened(name, error) from error
        return Opening(
            directory,
            name,
            None if is_known else topic_id,
            self._config_of(name.topic),
            self.node_id,
            self.followers,
            self._now_ms(),
            progress,
        )

    def _settle_home(self, directory: DataDirectory, name: TopicPartition, topic_id: bytes) -> bool:
        """Makes way for the partition where another one's files lie; whether its own directory says whose it is."""
        home = Directory(directory.disk, str(name))
        self.retirement.make_way(directory.disk, str(name))
        identity = identity_of(home)
        if identity not in (None, topic_id):
            set_aside(home, identity or NO_ID)
            identity = None
        if not directory.disk.exists(str(name)):
            self.checkpoints.begin_anew(directory, name)
            return False
        directory.heed_note(name)
        if identity is None and home.list() and not is_partition(home):
            directory.note_foreign(name)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} holds files of somebody else")
        return identity is not None

    def take_over(self, name: TopicPartition, partition: Partition) -> Partition:
        """It is open: from now on it has its role, and is found. StorageError if that fails."""
        directory, held = self._place[name], self._by_name[name.topic]
        if directory.offline:
            raise StorageError(0, f"{directory.path} failed meanwhile")
        self._assume(partition, held.topic.partitions[name.partition])
        held.opened[name.partition] = partition
        self._note_flush_ms(partition)
        self._unopened.pop(name, None)
        for offsets in (directory.recovery_points, directory.log_starts, directory.high_watermarks):
            offsets.pop(name, None)
        if partition.log.has_unsynced_segments:
            self.followers.sealed(partition)
        return partition

    def not_opened(self, name: TopicPartition, error: StorageError) -> ApiError:
        """Notes why it cannot be opened; what to answer."""
        directory = self._place[name]
        if isinstance(error, DamagedError):
            directory.note_damage(name, error)
        self.directory_failed(directory, error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    # Roles

    def _assume(self, partition: Partition, state: PartitionState) -> None:
        """Lead or follow, as the cluster says."""
        terms = Terms(
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            state.replicas,
            state.isr,
            state.adding,
            state.removing,
        )
        if state.leader == self.node_id:
            partition.lead(terms, self.followers.steady_ms())
        else:
            partition.follow(terms)

    # Moving

    def prefer(self, name: TopicPartition, directory: DataDirectory) -> None:
        """Should this node get a replica of the partition, it will lie there."""
        if len(self._preferred) >= limits.PREFERRED_DIRECTORIES_MAX:
            del self._preferred[next(iter(self._preferred))]
        self._preferred[name] = directory

    def move(self, partition: Partition, target: DataDirectory, new: Log) -> None:
        """`new`, complete and in `target`, takes the place of the partition's log, which is removed later.

        A loss of power may undo one of the two renames. If both are there, the one counts whose directory the cluster
        knows; if none is, the move is finished at the start. What is appended from now on is synced with the name.
        """
        name = TopicPartition(partition.topic, partition.index)
        old, config = partition.log, partition.log.config
        mark_deleted(old.directory, self._by_name[name.topic].topic.id)
        new.directory.move_to(str(name))
        new.durable.names_changed = True
        new.name = str(name)
        partition.move_to(new)
        self._place[name].forget(name)
        self._place[name] = target
        target.partitions[name] = None
        self.removal.add(self.followers.steady_ms() + config.file_delete_delay_ms, Doomed(old.directory, old))
        self.on_change(partition)

    # Failing

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        if self.holds(partition):
            self.directory_failed(self._place[TopicPartition(partition.topic, partition.index)], error)

    def directory_failed(self, directory: DataDirectory, error: StorageError) -> None:
        several = len(self._state.brokers) > 1
        if several or not isinstance(error, DamagedError):
            directory.fail(error)
        if several and not directory.offline:
            self._take_offline(directory)

    def _take_offline(self, directory: DataDirectory) -> None:
        """None of its replicas is served any more; the cluster is told and lets others lead."""
        directory.offline = True
        gone = list(self.opened_in(directory))
        for name, partition in gone:
            del self._by_name[name.topic].opened[name.partition]
            self.flushed_by_time.pop(partition, None)
        for name in directory.partitions:
            self._unopened.pop(name, None)
        for _, partition in gone:
            self._gone(partition)
        self.on_offline(directory)

    def offline_directories(self) -> list[bytes]:
        """The ids of directories that failed since the start."""
        return [directory.id for directory in self.directories if directory.offline]

    # Following the cluster

    def gone_from(self, state: ClusterState) -> list[Topic]:
        """The topics that are known here and not there."""
        return [held.topic for held in self._by_name.values() if held.topic.id not in state.topic_by_id]

    def load(self, state: ClusterState) -> None:
        """Takes over the topics that exist, at the start (nothing is opened yet) or when the cluster's state was
        replaced as a whole."""
        self._state = state
        settle_futures(self.directories)
        for gone in self.gone_from(state):
            self._delete(gone)
        for topic in state.topics.values():
            held = self._by_name.get(topic.name)
            before: dict[int, PartitionState] = {}
            if held is not None:
                before = {each.index: each for each in held.topic.partitions}
                held.topic = topic
            self._add(topic, [each for each in topic.partitions if each.index not in before], existing=True)
            for new in topic.partitions:
                if new.index in before and before[new.index] != new:
                    self._change(topic, before[new.index], new)
            self.configure(topic.name)
        for directory in self.directories:
            for name in directory.deleted:
                self.removal.add(0, Doomed(Directory(directory.disk, name)))
            for partition in directory.found:
                if partition in directory.partitions:
                    continue
                home = Directory(directory.disk, str(partition))
                # A node that is alone keeps what it does not know: nobody else could have the records.
                if set_stray_aside(directory, home) and len(state.brokers) > 1:
                    delay_ms = self._config_of("").file_delete_delay_ms
                    self.removal.add(self.followers.steady_ms() + delay_ms, Doomed(home))
            directory.deleted, directory.found = [], {}

    def apply(self, changes: Sequence[Change]) -> None:
        reconfigured: dict[str, None] = {}  # once each, however many of its settings changed
        for change in changes:
            try:
                match change:
                    case PartitionsAdded(topic, states):
                        self._add(topic, states)
                    case TopicDeleted(topic):
                        self._delete(topic)
                    case ConfigChanged(resource, _, _) if resource.type == ResourceType.TOPIC:
                        reconfigured[resource.name] = None
                    case ConfigChanged(resource, _, _) if resource.type == ResourceType.BROKER:
                        reconfigured |= dict.fromkeys(self._by_name)
                    case PartitionChanged(topic, old, new):
                        self._change(topic, old, new)
            except Exception:  # a mistake of ours with one must not keep all others from their roles
                log.exception("a %s could not be followed", type(change).__name__)
        for name in reconfigured:
            self.configure(name)

    def configure(self, topic: str) -> None:
        """Hands a topic's present settings to its opened partitions."""
        if (held := self._by_name.get(topic)) is not None and held.opened:
            config = self._config_of(topic)
            for partition in held.opened.values():
                partition.configure(config)
                self._note_flush_ms(partition)
                self.on_change(partition)

    def _note_flush_ms(self, partition: Partition) -> None:
        if partition.log.config.flush_ms < limits.INT64_MAX:
            self.flushed_by_time[partition] = None
        else:
            self.flushed_by_time.pop(partition, None)

    def _add(self, topic: Topic, states: Iterable[PartitionState], *, existing: bool = False) -> None:
        if topic.name not in self._by_name:
            self._by_name[topic.name] = self._by_id[topic.id] = _Held(topic)
        here = [each for each in states if self.node_id in each.replicas]
        if len(self.directories) == 1 and self._all_usable and not self._preferred:
            directory = self.directories[0]
            names = dict.fromkeys(TopicPartition(topic.name, state.index) for state in here)
            directory.partitions.update(names)
            self._place.update(dict.fromkeys(names, directory))
            self._unopened.update(names)
        else:
            for state in here:
                self._place_replica(topic, state, existing=existing)

    def _place_replica(self, topic: Topic, state: PartitionState, *, existing: bool) -> None:
        name = TopicPartition(topic.name, state.index)
        preferred = self._preferred.pop(name, None)
        assigned = assigned_directory(state, self.node_id) if preferred is None else preferred.id
        directory = choose_directory(
            self.directories,
            name,
            topic.id,
            assigned,
            existing=existing,
            all_usable=self._all_usable,
            cordoned=self.cordoned() if len(self.directories) > 1 else (),
        )
        if directory is not None:
            directory.partitions[name] = None
            self._place[name] = directory
            self._unopened[name] = None

    def _change(self, topic: Topic, old: PartitionState, new: PartitionState) -> None:
        held = self._by_name.get(topic.name)
        if held is None:
            return
        here = self.node_id in new.replicas
        if self.node_id in old.replicas and not here:
            self._remove_replica(held, new.index, self._removed_at_ms(held))
            self.retirement.go_on()
        elif here and self.node_id not in old.replicas:
            self._place_replica(topic, new, existing=False)
        elif here:
            partition = held.opened.get(new.index)
            if partition is not None:
                try:
                    self._assume(partition, new)
                except StorageError as error:
                    self.storage_failed(partition, error)
                self.on_change(partition)

    def _delete(self, topic: Topic) -> None:
        held = self._by_name.pop(topic.name, None)
        if held is None:
            return
        del self._by_id[topic.id]
        due_ms = self._removed_at_ms(held)
        for state in topic.partitions:
            if self.node_id in state.replicas:
                self._remove_replica(held, state.index, due_ms)
        self.retirement.go_on()

    def _removed_at_ms(self, held: _Held) -> int:
        opened = next(iter(held.opened.values()), None)
        config = self._config_of(held.topic.name) if opened is None else opened.log.config
        return self.followers.steady_ms() + config.file_delete_delay_ms

    def _remove_replica(self, held: _Held, index: int, due_ms: int) -> None:
        name = TopicPartition(held.topic.name, index)
        partition = held.opened.pop(index, None)
        self._unopened.pop(name, None)
        directory = self._place.pop(name, None)
        if directory is not None:
            directory.forget(name)
            opened = None if partition is None else partition.log
            self.retirement.add(directory.disk, str(name), due_ms, held.topic.id, opened)
        if partition is not None:
            self.flushed_by_time.pop(partition, None)
            self._gone(partition)

    def _gone(self, partition: Partition) -> None:
        """It is not served any more: whoever waits for it, or follows it, hears of that."""
        self.on_change(partition)
        self.followers.gone(partition)

    def close(self) -> None:
        """A clean stop: everything flushed, checkpointed, and marked so. Deleted topics go at the next start."""
        self.retirement.finish()
        closed = []
        for directory in self.directories:
            if directory.offline:
                continue
            try:
                close_logs(directory.disk, [partition.log for _, partition in self.opened_in(directory)])
                closed.append(directory)
            except StorageError as error:
                directory.fail(error)
        self.checkpoints.write_now()
        for directory in closed:
            directory.mark_clean({name for name, _ in self.opened_in(directory)})


def _ignore(_: object) -> None:
    """Until the node is listening."""
