"""Partitions: the replicas this node holds, found by topic name or id, opened when first needed.

Topics and replicas come and go with changes of the metadata (`replica_changes.py`): a replica that is reassigned to
another broker is removed here. A partition that exists but has no replica here answers NOT_LEADER_OR_FOLLOWER. After a
clean stop, a partition's files are not touched until a request needs them (or housekeeping opens them); after a crash,
all partitions are recovered before the node serves requests (`recovery`).

A partition whose directory fails answers KAFKA_STORAGE_ERROR; all others go on. A single node tries to open the
partition again at the next request. In a cluster the directory is offline until the next start, as with Kafka, and
other replicas become leaders: with a disk that fails intermittently, leadership would move to and fro.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ottla.cluster.entities import PartitionState, Topic
from ottla.cluster.state import ClusterState
from ottla.log.closing import close_logs
from ottla.log.config import LogConfig
from ottla.log.files.disk import DamagedError, Directory, StorageError
from ottla.log.log import Log
from ottla.log.recovery.ownership import is_partition
from ottla.log.recovery.recover import Progress
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.replica.partition import Partition
from ottla.replica.terms import Terms
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.directory_choice import identity_of
from ottla.server.storage.neighbours import NodeNeighbours
from ottla.server.storage.opening import Opening
from ottla.server.storage.pending_checkpoints import PendingCheckpoints
from ottla.server.storage.removal import Doomed, Removal, Retirement, mark_deleted, set_aside

log = logging.getLogger(__name__)


class Held:
    """A topic of the cluster, and those of its partitions that are opened here."""

    __slots__ = ("count", "failed_fetches", "failed_produces", "opened", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.count = 0  # the number of its partitions known here, which grows slice by slice for a large topic
        self.opened: dict[int, Partition] = {}
        self.failed_produces = 0  # batches of producers that were refused
        self.failed_fetches = 0  # partitions of consumers' fetches that were refused


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
        neighbours: NodeNeighbours,
        cordoned: Callable[[], Sequence[bytes]],
        directory_lost: Callable[[DataDirectory], None],
    ) -> None:
        """`cordoned` returns the ids of directories that take no new replicas; `directory_lost` is called with a
        directory that went offline.
        """
        self.directories = directories
        self.all_usable = all_usable  # whether every configured directory is among `directories`
        self.fetch_max_bytes = fetch_max_bytes
        self.node_id = node_id
        self.config_of = config_of
        self._now_ms = now_ms
        self.state = ClusterState()
        self.by_name: dict[str, Held] = {}  # all topics of the cluster
        self.by_id: dict[bytes, Held] = {}
        self.place: dict[TopicPartition, DataDirectory] = {}  # the directories of this node's usable replicas
        self.unopened: dict[TopicPartition, None] = {}
        self._recovers_late = False
        self.unrecovered: dict[TopicPartition, None] = {}
        self.flushed_by_time: dict[Partition, None] = {}  # opened partitions with a flush.ms
        self.moving: set[TopicPartition] = set()  # being copied into another directory; must not be compacted meanwhile
        self.neighbours = neighbours
        # directories chosen for replicas that this node does not have yet
        self.preferred: dict[TopicPartition, DataDirectory] = {}
        self.removal = Removal()
        self.retirement = Retirement(self.removal)
        self.pending_checkpoints = PendingCheckpoints()
        # Called when a partition was deleted or got another role or settings: its waiters are tried again.
        self.changed = neighbours.moved
        self.cordoned = cordoned
        self._directory_lost = directory_lost

    # Finding

    def find(self, topic: str, index: int) -> Partition:
        """Return the opened partition. Raises UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER or
        KAFKA_STORAGE_ERROR.
        """
        held = self.by_name.get(topic)
        if held is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return held.opened.get(index) or self._find_closed(held, index)

    def find_by_id(self, topic_id: bytes, index: int) -> Partition:
        held = self.by_id.get(topic_id)
        if held is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return held.opened.get(index) or self._find_closed(held, index)

    def _find_closed(self, held: Held, index: int) -> Partition:
        if not 0 <= index < held.count:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.node_id not in held.topic.partitions[index].replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self._open(held, index)

    def get(self, topic: str, index: int) -> Partition | None:
        """Return the partition, or None if this node does not have it or cannot open it now."""
        try:
            return self.find(topic, index)
        except ApiError:
            return None

    def holds(self, partition: Partition) -> bool:
        """Return whether this very object is still in use; its topic may have been deleted, or created anew."""
        held = self.by_name.get(partition.topic)
        return held is not None and held.opened.get(partition.index) is partition

    def opened(self) -> Iterator[Partition]:
        for held in tuple(self.by_name.values()):
            yield from tuple(held.opened.values())

    def opened_of(self, topic: str) -> tuple[Partition, ...]:
        held = self.by_name.get(topic)
        return () if held is None else tuple(held.opened.values())

    def if_opened(self, topic: str | bytes, index: int) -> Partition | None:
        """Return the partition if it is open; `topic` is a name or an id."""
        held = self.by_id.get(topic) if isinstance(topic, bytes) else self.by_name.get(topic)
        return None if held is None else held.opened.get(index)

    def opened_in(self, directory: DataDirectory) -> Iterator[tuple[TopicPartition, Partition]]:
        for name in directory.partitions:
            held = self.by_name.get(name.topic)  # None for a topic that is being deleted
            partition = None if held is None else held.opened.get(name.partition)
            if partition is not None:
                yield name, partition

    def directory_of(self, partition: TopicPartition) -> DataDirectory | None:
        return self.place.get(partition)

    def topic_id(self, topic: str) -> bytes | None:
        return None if (held := self.by_name.get(topic)) is None else held.topic.id

    # Opening

    def recover_late(self) -> None:
        """Leave the recovery of logs to workers from now on, because the loop serves requests: `unrecovered` lists
        those logs.
        """
        self._recovers_late = True

    def unclean(self) -> dict[DataDirectory, list[TopicPartition]]:
        """Return the unopened partitions in directories without a clean shutdown, by directory."""
        found: dict[DataDirectory, list[TopicPartition]] = {}
        for name in self.unopened:
            directory = self.place.get(name)
            if directory is not None and not directory.clean and directory.disk.exists(str(name)):
                found.setdefault(directory, []).append(name)
        return found

    def open_some(self, count: int) -> int:
        """Open up to `count` partitions that no request has needed yet; return how many are left."""
        for name in tuple(islice(self.unopened, count)):
            if self.get(*name) is None:  # its directory fails: the next request tries again
                self.unopened.pop(name, None)
        return len(self.unopened)

    def _open(self, held: Held, index: int) -> Partition:
        name = TopicPartition(held.topic.name, index)
        place = self.place.get(name)
        if self._recovers_late and place is not None and not place.clean and place.disk.exists(str(name)):
            self.unrecovered[name] = None
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} has yet to be recovered")
        opening = self.opening(name)
        try:
            return self.take_over(name, opening.open())
        except StorageError as error:
            raise self.not_opened(name, error) from error

    def opening(self, name: TopicPartition, progress: Progress | None = None) -> Opening:
        """Return the `Opening` of a partition. Raises KAFKA_STORAGE_ERROR."""
        directory = self.place.get(name)
        if directory is None or directory.offline or name in directory.damaged:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"the data of {name} are not available")
        topic_id = self.by_name[name.topic].topic.id
        try:
            is_known = self._settle_home(directory, name, topic_id)
        except StorageError as error:
            raise self.not_opened(name, error) from error
        return Opening(
            directory,
            name,
            None if is_known else topic_id,
            self.config_of(name.topic),
            self.node_id,
            self.neighbours,
            self._now_ms(),
            progress,
        )

    def _settle_home(self, directory: DataDirectory, name: TopicPartition, topic_id: bytes) -> bool:
        """Move another partition's files out of the way; return whether the directory has this partition's topic id."""
        home = Directory(directory.disk, str(name))
        self.retirement.make_way(directory.disk, str(name))
        identity = identity_of(home)
        if identity not in (None, topic_id):
            set_aside(home, identity or NO_ID)
            identity = None
        if not directory.disk.exists(str(name)):
            self.pending_checkpoints.begin_anew(directory, name)
            return False
        directory.heed_note(name)
        if identity is None and home.list() and not (name in directory.own and is_partition(home)):
            directory.note_foreign(name)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} holds files of somebody else")
        return identity is not None

    def take_over(self, name: TopicPartition, partition: Partition) -> Partition:
        """Give an opened partition its role and make it available to requests. Raises StorageError."""
        directory, held = self.place[name], self.by_name[name.topic]
        if directory.offline:
            raise StorageError(0, f"{directory.path} failed meanwhile")
        self.assume(partition, held.topic.partitions[name.partition])
        held.opened[name.partition] = partition
        self._note_flush_ms(partition)
        self.unopened.pop(name, None)
        for offsets in (directory.recovery_points, directory.log_starts, directory.high_watermarks):
            offsets.pop(name, None)
        if partition.log.has_unsynced_segments:
            self.neighbours.sealed(partition)
        return partition

    def not_opened(self, name: TopicPartition, error: StorageError) -> ApiError:
        """Record why a partition cannot be opened; return the error to answer with."""
        directory = self.place[name]
        if isinstance(error, DamagedError):
            directory.note_damage(name, error)
        self.directory_failed(directory, error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    # Roles

    def assume(self, partition: Partition, state: PartitionState) -> None:
        """Make the partition a leader or a follower, as in the metadata."""
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
            partition.lead(terms, self.neighbours.steady_ms())
        else:
            partition.follow(terms)

    # Moving

    def prefer(self, name: TopicPartition, directory: DataDirectory) -> None:
        """Choose the directory for a replica of the partition that this node may get later."""
        if len(self.preferred) >= limits.PREFERRED_DIRECTORIES_MAX:
            del self.preferred[next(iter(self.preferred))]
        self.preferred[name] = directory

    def move(self, partition: Partition, target: DataDirectory, new: Log) -> None:
        """Replace the partition's log by `new`, a complete copy in `target`; the old log is removed later.

        A loss of power may undo one of the two renames. If both copies have the name then, the one in the directory
        that the metadata assigns is used; if none has it, the next start finishes the move. The next sync of the log
        also syncs its name.
        """
        name = TopicPartition(partition.topic, partition.index)
        old, config = partition.log, partition.log.config
        mark_deleted(old.directory, self.by_name[name.topic].topic.id)
        new.directory.move_to(str(name))
        new.durable.names_changed = True
        new.name = str(name)
        partition.move_to(new)
        self.place[name].forget(name)
        self.place[name] = target
        target.partitions[name] = None
        target.own.add(name)
        self.removal.add(self.neighbours.steady_ms() + config.file_delete_delay_ms, Doomed(old.directory, old))
        self.changed(partition)

    # Failing

    def storage_failed(self, partition: Partition, error: StorageError) -> None:
        if self.holds(partition):
            self.directory_failed(self.place[TopicPartition(partition.topic, partition.index)], error)

    def directory_failed(self, directory: DataDirectory, error: StorageError) -> None:
        several = len(self.state.brokers) > 1
        if several or not isinstance(error, DamagedError):
            directory.fail(error)
        if several and not directory.offline:
            self._take_offline(directory)

    def _take_offline(self, directory: DataDirectory) -> None:
        """Stop serving all replicas of the directory; the controller is told and elects other leaders."""
        directory.offline = True
        gone = list(self.opened_in(directory))
        for name, partition in gone:
            del self.by_name[name.topic].opened[name.partition]
            self.flushed_by_time.pop(partition, None)
        for name in directory.partitions:
            self.unopened.pop(name, None)
        for _, partition in gone:
            self.gone(partition)
        self._directory_lost(directory)

    def offline_directories(self) -> list[bytes]:
        """Return the ids of directories that failed since the start."""
        return [directory.id for directory in self.directories if directory.offline]

    # Following the metadata (see `replica_changes.py`)

    def hold(self, topic: Topic) -> Held:
        """Return the entry of a topic; create it if there is none."""
        held = self.by_name.get(topic.name)
        if held is None:
            held = self.by_name[topic.name] = self.by_id[topic.id] = Held(topic)
        return held

    def configure(self, partition: Partition) -> None:
        """Give the partition its topic's current settings, if this node still has it."""
        if self.holds(partition):
            partition.configure(self.config_of(partition.topic))
            self._note_flush_ms(partition)
            self.changed(partition)

    def _note_flush_ms(self, partition: Partition) -> None:
        if partition.log.config.flush_ms < limits.INT64_MAX:
            self.flushed_by_time[partition] = None
        else:
            self.flushed_by_time.pop(partition, None)

    def gone(self, partition: Partition) -> None:
        """Notify the waiters and followers of a partition that is not served any more."""
        self.changed(partition)
        self.neighbours.grew(partition, hurry=True)

    def close_logs(self) -> list[DataDirectory]:
        """Flush and close every log for a clean stop; return the directories in which that worked."""
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
        return closed
