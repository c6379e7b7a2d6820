"""Replication: the partitions this node follows and their leaders; the ISR changes it proposes as a leader; the
directories of its replicas.

Changes of the metadata arrive here after `Partitions` has applied them: roles are known, and removed replicas are gone.
There is one fetcher per leader. Unopened partitions are opened here, a few per turn of the loop; opened ones (all of
them, in an election) are followed at once.

A single node needs almost nothing of this, so the parts are made, and imported, when they are first needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ottla.client.address import Address
from ottla.cluster.entities import (
    NO_LEADER,
    BrokerChanged,
    Change,
    PartitionChanged,
    PartitionsAdded,
    PartitionState,
    Topic,
    TopicDeleted,
)
from ottla.cluster.state import ClusterState
from ottla.machine.stepped import in_one_go
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Steps, Tally
from ottla.server.peers.peers import Peers, broker_address
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.replication.quotas import Quotas
from ottla.server.replication.session import Key
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.storage.directory_choice import assigned_directory
from ottla.server.storage.storage import Storage

if TYPE_CHECKING:
    from ottla.server.replication.assignments import Assignments
    from ottla.server.replication.fetcher import Fetcher
    from ottla.server.replication.isr_changes import IsrChanges
    from ottla.server.replication.log_dirs import LogDirs

log = logging.getLogger(__name__)

_GONE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Replication:
    """`quotas` bound how fast replicas are copied. `log_dirs` moves replicas between the data directories of this node;
    it is made when it is first needed.
    """

    def __init__(
        self, runtime: Runtime, configs: Configs, storage: Storage, peers: Peers, member: QuorumMember
    ) -> None:
        self._runtime = runtime
        self._loop = runtime.loop
        self._configs = configs
        self._storage = storage
        self._partitions = storage.partitions
        self._peers = peers
        self._member = member
        self._metadata = member.metadata
        self._node_id = member.metadata.node_id
        self._listener = inter_broker_listener(configs.broker)
        self._fetchers: dict[int, Fetcher] = {}  # by leader
        self._leader_of: dict[Key, int] = {}  # the leader of each followed partition
        self._unopened: dict[Key, int] = {}  # followed partitions that are not open yet → leader
        self._opening: asyncio.Task[None] | None = None
        self._slice = Tally(limits.METADATA_RECORDS_PER_SLICE)
        self._isr_changes: IsrChanges | None = None
        self._assignments: Assignments | None = None
        self._log_dirs: LogDirs | None = None
        self.quotas = Quotas(configs, runtime.steady_ms, self._is_in_sync)

    # --- parts

    @property
    def isr_changes(self) -> IsrChanges:
        if self._isr_changes is None:
            from ottla.server.replication.isr_changes import IsrChanges

            self._isr_changes = IsrChanges(
                self._runtime, self._configs, self._partitions, self._metadata, self._member.link
            )
        return self._isr_changes

    @property
    def assignments(self) -> Assignments:
        if self._assignments is None:
            from ottla.server.replication.assignments import Assignments

            self._assignments = Assignments(self._loop, self._metadata, self._member.link)
        return self._assignments

    @property
    def log_dirs(self) -> LogDirs:
        if self._log_dirs is None:
            from ottla.server.replication.log_dirs import LogDirs

            self._log_dirs = LogDirs(self._runtime, self._storage, self.assignments, self.quotas.log_dirs)
        return self._log_dirs

    @property
    def moves(self) -> LogDirs | None:
        """The moves of replicas between directories; None if there never were any."""
        return self._log_dirs

    # --- for the node

    def start(self, state: ClusterState) -> None:
        if any(directory.futures for directory in self._partitions.directories):
            self.log_dirs.start()
        in_one_go(self.reloading(state))

    def reloading(self, state: ClusterState) -> Steps:
        """Follow a new state that replaced the old one as a whole (a snapshot)."""
        self.quotas.configure()
        for key in tuple(self._leader_of):
            topic = state.topic_by_id.get(key.topic_id)
            if topic is None or key.index >= len(topic.partitions):
                self._gone(key)
                if self._slice.is_full():
                    yield
        for topic in tuple(state.topics.values()):
            for partition in topic.partitions:
                self._follow(topic, partition)
                if self._slice.is_full():
                    yield
        yield from self._hear_of_all(state)

    def following(self, changes: Sequence[Change]) -> Steps:
        """Follow changes of the metadata, which `Partitions` has applied already."""
        self.quotas.follow(changes)
        for change in changes:
            match change:
                case PartitionsAdded(topic, states):
                    yield from self._follow_new(topic, states)
                case PartitionChanged(topic, _, new):
                    self._follow(topic, new)
                    if self._slice.is_full():
                        yield
                case TopicDeleted(topic):
                    for state in topic.partitions:
                        self._gone(Key(topic.id, state.index))
                        if self._slice.is_full():
                            yield
                case BrokerChanged(_, new) if new is not None and not new.fenced:
                    self._heard_of(new.id)
            if isinstance(change, BrokerChanged) and change.old is not None and change.old.active:
                self._may_have_left(change.old.id)

    def consider(self, partition: Partition) -> None:
        """Check whether a partition led here needs another ISR."""
        self.isr_changes.consider(partition)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        for fetcher in self._fetchers.values():
            await fetcher.close()
        for part in (self._log_dirs, self._isr_changes, self._assignments):
            if part is not None:
                await part.close()

    def _may_have_left(self, broker_id: int) -> None:
        """Tell the partitions led here that a broker may be gone. Idle followers do not make a leader check its
        partitions, so otherwise requests would go on waiting for that broker.
        """
        broker = self._metadata.state.brokers.get(broker_id)
        if broker is None or not broker.active:
            for partition in self._partitions.opened():
                partition.broker_left(broker_id, self._runtime.steady_ms())

    # --- roles

    def _follow_new(self, topic: Topic, states: Sequence[PartitionState]) -> Steps:
        """Follow new partitions; skip those whose only replica is here, in the assigned directory, because they need
        nothing.
        """
        sole = (self._node_id,)
        for state in states:
            if self._slice.is_full():
                yield
            if state.replicas == sole and state.leader == self._node_id:
                directory = self._partitions.directory_of(TopicPartition(topic.name, state.index))
                if directory is not None and state.directories == (directory.id,) and not directory.offline:
                    continue
            self._follow(topic, state)

    def _follow(self, topic: Topic, state: PartitionState) -> None:
        """Follow the partition's leader, if it is another broker."""
        key = Key(topic.id, state.index)
        directory = self._partitions.directory_of(TopicPartition(topic.name, state.index))
        if self._node_id not in state.replicas or directory is None or directory.offline:
            self._gone(key)
            return
        # Metadata of old Kafka versions has no directories, and needs none.
        unknown = state.directories and assigned_directory(state, self._node_id) != directory.id
        if unknown and not (self.moves is not None and self.moves.is_leaving(key)):
            self.assignments.tell(key, directory.id)
        if state.leader == self._node_id and len(state.replicas) > 1:
            self.isr_changes.start()
        if state.leader in (self._node_id, NO_LEADER):
            self._forget(key)
            return
        opened = self._partitions.if_opened(topic.id, state.index)
        if opened is None:
            self._forget(key)
            self._unopened[key] = state.leader
            if self._opening is None:
                self._opening = self._loop.create_task(self._open_some())
        else:
            self._fetch_from(state.leader, key, opened)

    def _fetch_from(self, leader_id: int, key: Key, partition: Partition) -> None:
        before = self._leader_of.get(key)
        fetcher = self._fetchers.get(leader_id)
        if before == leader_id and fetcher is not None and fetcher.follows(key, partition):
            return
        if before is not None and before != leader_id:
            self._forget(key)
        if fetcher is None:
            from ottla.server.replication.fetcher import Fetcher

            fetcher = Fetcher(
                leader_id,
                self._runtime,
                self._configs,
                self._storage,
                self._peers,
                self._metadata,
                self.quotas.follower,
                self._address_of,
                # On the active controller, a broken connection may be the first sign that a broker is gone.
                self._member.liveness.look_at,
            )
            self._fetchers[leader_id] = fetcher
        self._leader_of[key] = leader_id
        fetcher.add(key, partition)

    def _gone(self, key: Key) -> None:
        """Stop everything for a replica that is not here any more or cannot be used."""
        self._forget(key)
        if self._log_dirs is not None:
            self._log_dirs.forget(key)
        if self._assignments is not None:
            self._assignments.forget(key)

    def _forget(self, key: Key) -> None:
        self._unopened.pop(key, None)
        leader_id = self._leader_of.pop(key, None)
        if leader_id is not None:
            self._fetchers[leader_id].remove(key)

    async def _open_some(self) -> None:
        """Open followed partitions, a few per turn of the loop, because opening takes time."""
        try:
            while self._unopened:
                for key in tuple(islice(self._unopened, limits.PARTITIONS_OPENED_PER_TURN)):
                    leader_id = self._unopened.pop(key)
                    try:
                        self._fetch_from(leader_id, key, self._partitions.find_by_id(*key))
                    except ApiError as error:
                        # The metadata is about to say that it was deleted or reassigned, or the log has one line for
                        # the whole directory.
                        if error.code in _GONE or self._is_in_lost_directory(key):
                            continue
                        log.error("partition %d of %s cannot be followed: %s", key.index, key.topic_id.hex(), error)
                await asyncio.sleep(0)
        finally:
            self._opening = None

    def _is_in_lost_directory(self, key: Key) -> bool:
        held = self._partitions.by_id.get(key.topic_id)
        directory = None if held is None else self._partitions.directory_of(TopicPartition(held.topic.name, key.index))
        return directory is not None and directory.offline

    def _heard_of(self, broker_id: int) -> None:
        """Handle a broker that is back or has another address. As a follower it may rejoin the ISR without
        a new fetch.
        """
        fetcher = self._fetchers.get(broker_id)
        if fetcher is not None:
            fetcher.hurry()
        for partition in self._partitions.opened():
            in_sync = partition.in_sync
            if in_sync is not None and broker_id in in_sync.followers and broker_id not in in_sync.isr:
                self.consider(partition)

    def _hear_of_all(self, state: ClusterState) -> Steps:
        """Do as in `_heard_of` and `_may_have_left` for all brokers, since a snapshot does not say which
        ones changed.
        """
        active = {broker.id for broker in state.brokers.values() if broker.active}
        for fetcher in self._fetchers.values():
            fetcher.hurry()
        for partition in self._partitions.opened():
            if self._slice.is_full():
                yield
            in_sync = partition.in_sync
            if in_sync is None:
                continue
            for broker_id in tuple(in_sync.followers):
                if broker_id not in active:
                    partition.broker_left(broker_id, self._runtime.steady_ms())
                elif broker_id not in in_sync.isr:
                    self.consider(partition)

    # --- called by fetchers

    def _address_of(self, broker_id: int) -> Address | None:
        return broker_address(self._metadata.state, broker_id, self._listener)

    def _is_in_sync(self, topic: str, index: int) -> bool:
        """Return whether this node's replica is in sync."""
        found = self._metadata.state.topics.get(topic)
        return found is None or index >= len(found.partitions) or self._node_id in found.partitions[index].isr
