"""Watch: observes every node after each of its steps, and reports changes to the books.

An observation must be cheap, because there are very many: it is first compared with the last one, and only a difference
is examined. Nothing here changes a node or calls its disk in a way that could fail.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from ottla.log.log import Log
from ottla.model.ids import NO_ID, TopicPartition
from ottla.raft.journal import ReplicaKey
from ottla.raft.voters import Voter, VoterSet
from ottla.replica.partition import Partition
from ottla.server.node import Node
from ottla.server.quorum.quorum import Quorum
from ottla.sim.cluster import SimMachine
from ottla.sim.replicated.committed_batches import BatchReader
from ottla.sim.replicated.log_invariants import Ballots, Electorate, Life, LogBook
from ottla.sim.world.loop import SimHost

PartitionKey = tuple[bytes, int]  # topic id, index
_NOTHING = (-1, -1, False, -1, -1, None, VoterSet())


class Watch:
    """All machines and all books of a run."""

    def __init__(
        self,
        tell: Callable[[str], None],
        blame: Callable[[str], None],
        is_weak: Callable[[SimMachine], bool],
        *,
        lossy: bool,
        rewritten: Container[str] = (),
    ) -> None:
        """`is_weak`: whether a machine may lack records it had. `lossy`: nothing is claimed of partitions' records.
        `rewritten`: topics that each node compacts by itself.
        """
        self.tell = tell
        self._blame = blame
        self._is_weak = is_weak
        self._lossy = lossy
        self._rewritten = rewritten
        self.quorum = LogBook("quorum", blame)
        self.ballots = Ballots(blame)
        self.electorate = Electorate(blame)
        self.partitions: dict[PartitionKey, LogBook] = {}
        self._machines: dict[str, SimMachine] = {}  # by address
        self._observers: dict[int, NodeObserver] = {}  # by node id; observes the latest incarnation of each
        self._lives: dict[int, int] = {}

    def add(self, machine: SimMachine) -> None:
        self._machines[machine.host.address] = machine

    def look(self, host: SimHost) -> None:
        """Observe this host, whose code has just run."""
        machine = self._machines.get(host.address)
        if machine is None or machine.incarnation is None:
            return
        node_id = int(machine.settings["node.id"])
        observer = self._observers.get(node_id)
        if observer is None or observer.node is not machine.incarnation:
            life = self._lives[node_id] = self._lives.get(node_id, 0) + 1
            observer = self._observers[node_id] = NodeObserver(self, machine.incarnation, Life(node_id, life))
        observer.look()

    def book(self, key: PartitionKey, name: TopicPartition) -> LogBook:
        found = self.partitions.get(key)
        if found is None:
            rewritten = name.topic in self._rewritten
            found = self.partitions[key] = LogBook(str(name), self._blame, lossy=self._lossy, rewritten=rewritten)
        return found

    def replica_end(self, node_id: int, key: PartitionKey) -> int | None:
        """Return the log end of a node's open replica; None if unknown."""
        observer = self._observers.get(node_id)
        return None if observer is None else observer.replica_end(key)

    def journal_end(self, voter: Voter) -> int | None:
        """Return the end of a voter's metadata log; None if unknown, or if that disk is lost."""
        observer = self._observers.get(voter.id)
        if observer is None or observer.directory is None or voter.directory not in (NO_ID, observer.directory):
            return None
        return observer.journal_end

    def is_weak(self, node_id: int) -> bool:
        return any(self._is_weak(each) for each in self._machines.values() if each.settings["node.id"] == str(node_id))

    def facts(self) -> dict[str, int]:
        return {
            "quorum epochs": self.quorum.epochs,
            "committed metadata": self.quorum.committed_log.end_offset,
            "partition epochs": sum(book.epochs for book in self.partitions.values()),
        }


class NodeObserver:
    """Observes one incarnation of a node."""

    def __init__(self, watch: Watch, node: Node, life: Life) -> None:
        self.node = node
        self.journal_end: int | None = None
        self.directory: bytes | None = None  # the id of its metadata directory
        self._watch = watch
        self._life = life
        self._quorum: WatchedJournal | None = None
        self._replicas: dict[Partition, Replica] = {}

    def look(self) -> None:
        if self.node.composed is None:
            return  # it has no parts yet
        member, partitions = self.node.member, self.node.partitions
        if self._quorum is None:
            self._quorum = WatchedJournal(self._watch, self._life, member.quorum)
            self.directory = member.quorum.node.me.directory
        self._quorum.look()
        self.journal_end = self._quorum.end_offset
        opened = list(partitions.opened())
        if len(opened) < len(self._replicas):
            self._look_last(opened)
        for partition in opened:
            replica = self._replicas.get(partition)
            if replica is None:
                key = (partitions.topic_id(partition.topic) or NO_ID, partition.index)
                clean = member.clean
                replica = self._replicas[partition] = Replica(self._watch, self._life, partition, key, clean=clean)
            replica.look()

    def _look_last(self, opened: list[Partition]) -> None:
        """Observe replicas that were closed in this step: they may have done something before, and told others."""
        for partition in [each for each in self._replicas if each not in opened]:
            self._replicas.pop(partition).look()

    def replica_end(self, key: PartitionKey) -> int | None:
        for partition, replica in self._replicas.items():
            if replica.key == key and self.node.partitions.holds(partition):
                return partition.log.next_offset
        return None


class WatchedJournal:
    """The metadata log of one incarnation."""

    def __init__(self, watch: Watch, life: Life, quorum: Quorum) -> None:
        self._watch = watch
        self._life = life
        self._quorum = quorum
        self._seen: tuple[int, int, bool, int, int, ReplicaKey | None, VoterSet] = _NOTHING
        self._batches = BatchReader(quorum.store.log)
        self._voters_offset = -1  # the offset of their record
        self.end_offset = 0

    def look(self) -> None:
        if self._quorum._held is not None:
            return  # its decisions are not on disk yet: no other node hears of them, and they may still be forgotten
        node = self._quorum.node
        end_offset = self._quorum.store.end_offset
        voters = node.history.latest  # the same object as long as the voters are the same
        seen = (node.epoch, node.leader_id, node.is_leader, node.high_watermark, end_offset, node.voted, voters)
        if seen == self._seen:
            return
        before, self._seen = self._seen, seen
        epoch, leader_id, leads, high_watermark, self.end_offset, voted, _ = seen
        watch, book, life = self._watch, self._watch.quorum, self._life
        if self.end_offset < self._batches.offset:
            book.cut(life, self._batches.offset, self.end_offset)
            self._batches.cut(self.end_offset)
        if voted is not None:
            watch.ballots.voted(node.me, epoch, voted)
        if leader_id >= 0 and (epoch, leader_id) != before[:2]:
            watch.ballots.follows(life.node_id, epoch, leader_id)
            watch.tell(f"quorum: {life} {'leads' if leads else f'follows node {leader_id}'} in epoch {epoch}")
        if leads and voters is not before[6] and before[2] and before[0] == epoch:
            watch.electorate.changed(life, before[6], voters, is_settled=self._voters_offset < high_watermark)
            watch.tell(f"quorum: {life} lets {', '.join(map(str, voters))} vote")
        self._voters_offset = node.history.latest_offset
        if leads and (not before[2] or before[0] != epoch):
            book.leads(life, epoch, self.end_offset)
            book.has(life, self._batches.read(book.owed(epoch)))
        if leads and high_watermark >= 0:
            book.moved(life, epoch, high_watermark)
            if high_watermark > max(before[3], book.committed_log.end_offset):
                self._check_majority(high_watermark)
        if high_watermark > before[3]:
            led_in = epoch if leads else before[0] if before[2] else None
            book.committed(life, self._batches.read(min(high_watermark, self.end_offset)), led_in=led_in)

    def _check_majority(self, high_watermark: int) -> None:
        voters = self._quorum.node.history.latest
        ends = {voter.id: self._watch.journal_end(voter) for voter in voters.others(self._life.node_id)}
        lacking = [voter for voter, end in ends.items() if end is not None and end < high_watermark]
        if 2 * (len(voters) - len(lacking)) <= len(voters):
            self._watch.quorum.lacks(self._life, high_watermark, (f"node {voter} has less" for voter in lacking))


class Replica:
    """One partition of one incarnation, while it is open."""

    def __init__(self, watch: Watch, life: Life, partition: Partition, key: PartitionKey, *, clean: bool) -> None:
        self.key = key
        self._clean = clean
        self._watch = watch
        self._life = life
        self._partition = partition
        self._book = watch.book(key, TopicPartition(partition.topic, partition.index))
        self._seen: tuple[int, bool, int, int, tuple[int, ...]] = (-1, False, -1, -1, ())
        self._batches = BatchReader(partition.log)
        # Reads up to the recovery point, below which the node considers everything synced.
        self._synced_batches = BatchReader(partition.log)

    def look(self) -> None:
        partition = self._partition
        in_sync = partition.in_sync
        if partition.log.recovery_point != self._synced_batches.offset:
            self._look_at_disk(partition.log)
        seen = (
            partition.leader_epoch,
            partition.is_leader,
            partition.high_watermark,
            partition.log.next_offset,
            in_sync.isr if in_sync is not None else (),
        )
        if seen == self._seen:
            return
        before, self._seen = self._seen, seen
        epoch, leads, high_watermark, end_offset, members = seen
        book, life = self._book, self._life
        if end_offset < self._batches.offset:
            book.cut(life, self._batches.offset, end_offset)
            self._batches.cut(end_offset)
        if leads:
            book.committed_log.start_offset = max(book.committed_log.start_offset, partition.log.log_start_offset)
            if not before[1] or before[0] != epoch:
                self._watch.tell(f"{book.name}: {life} leads in epoch {epoch} from offset {end_offset} on")
                book.leads(life, epoch, end_offset, clean=self._clean)
                book.has(life, self._batches.read(book.owed(epoch)))
            book.moved(life, epoch, high_watermark)
            if members != before[4] or high_watermark > max(before[2], book.committed_log.end_offset):
                book.lacks(life, high_watermark, self._lacking(high_watermark, members))
        # In one step a leader may both raise its high watermark and lose leadership.
        led_in = epoch if leads else before[0] if before[1] else None
        book.committed(life, self._batches.read(high_watermark), led_in=led_in)

    def _look_at_disk(self, log: Log) -> None:
        """The recovery point moved: check that everything below it is on disk."""
        recovery_point = min(log.recovery_point, log.next_offset)
        self._synced_batches.cut(recovery_point)
        for batch in self._synced_batches.read(recovery_point):
            if not self._synced_batches.is_durable(batch):
                self._book.unsynced(self._life, recovery_point, batch)
                return

    def _lacking(self, high_watermark: int, members: tuple[int, ...]) -> Iterator[str]:
        """Yield in-sync replicas that lack committed records, as far as they can be observed."""
        for node_id in members:
            if node_id != self._life.node_id and not self._watch.is_weak(node_id):
                end = self._watch.replica_end(node_id, self.key)
                if end is not None and end < high_watermark:
                    yield f"node {node_id}, which is in sync, has only {end}"
