"""Partitions under everything that brokers, leaders and clients do, against what must always hold.

The model knows which replicas hold all committed data: while the ISR has min.insync.replicas members or more, its
members do, and whoever crashes may lose it. The cluster must not forget the last of them, and must not let anybody else
lead, unless it was asked to.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.cluster.bench import Cluster

from ottla.cluster.commands.create_partitions import CreatePartitions, Growth
from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic
from ottla.cluster.commands.elect_leaders import PREFERRED, UNCLEAN, ElectLeaders
from ottla.cluster.commands.fence import UnregisterBroker
from ottla.cluster.commands.reassign import Reassign, ReplicaAssignment
from ottla.cluster.entities import NO_LEADER, PartitionChanged, PartitionState
from ottla.cluster.partition_index import Index
from ottla.cluster.snapshot import snapshot
from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError

BROKERS = range(1, 6)
IDS = st.sampled_from(BROKERS)
PARTITIONS = st.integers(0, 5)


def recomputed(state: ClusterState) -> Index:
    index = Index()
    for topic in state.topics.values():
        for partition in topic.partitions:
            index.move(topic.id, None, partition)
    return index


class Partitions(RuleBasedStateMachine):
    cluster: Cluster
    holders: dict[int, set[int]]  # partition → who surely has everything committed, if anything was
    incarnations: dict[int, int]

    @initialize(min_isr=st.integers(1, 3))
    def begin(self, min_isr: int) -> None:
        self.cluster = Cluster(brokers=0)
        self.incarnations = dict.fromkeys(BROKERS, 1)
        for id in BROKERS:
            self.cluster.join(id)
        configs = (("min.insync.replicas", str(min_isr)),)
        self.cluster.create("t", 4, replication_factor=3, configs=configs)
        self.min_isr = min_isr
        self.holders = {}
        self.look()

    def look(self) -> None:
        """Follow what the last commands changed, as replicas that replicate would."""
        for change in self.cluster.changes:
            if isinstance(change, PartitionChanged):
                self.check_change(change.old, change.new)
                self.commit(change.new)
        self.cluster.changes.clear()
        for partition in self.partitions():
            self.commit(partition)

    def commit(self, partition: PartitionState) -> None:
        """Something may be committed with these replicas: then whoever is not among them has not everything."""
        if len(partition.isr) >= min(self.min_isr, len(partition.replicas)) and partition.leader != NO_LEADER:
            self.holders[partition.index] = set(partition.isr)

    def check_change(self, old: PartitionState, new: PartitionState) -> None:
        assert new.partition_epoch == old.partition_epoch + 1
        assert new.leader_epoch in (old.leader_epoch, old.leader_epoch + 1)
        if new.leader != old.leader or not set(old.replicas) <= set(new.replicas):
            assert new.leader_epoch == old.leader_epoch + 1
        if new.leader not in (old.leader, NO_LEADER):
            assert new.leader in self.holders.get(new.index, {new.leader}) or new.recovering

    def partitions(self) -> list[PartitionState]:
        topic = self.cluster.state.topics.get("t")
        return [] if topic is None else list(topic.partitions)

    def do(self, command: Any) -> Any:
        try:
            reply = self.cluster.submit(command)
        except ApiError as error:
            reply = error
        self.look()
        return reply

    # --- what happens

    @rule(id=IDS, clean=st.booleans())
    def restart(self, id: int, clean: bool) -> None:
        """It stopped, was noticed, and comes back; after a crash without some of its data."""
        old = self.cluster.state.brokers.get(id)
        if old is not None:
            self.cluster.fence(id)
            self.look()
        if not clean or old is None:
            for held in self.holders.values():
                held.discard(id)
        self.incarnations[id] += 1
        epoch = old.epoch if clean and old is not None else -1
        self.cluster.register(id, incarnation=self.incarnations[id], previous_epoch=epoch)
        self.look()

    @rule(id=IDS)
    def heartbeat(self, id: int) -> None:
        if id in self.cluster.state.brokers:
            self.cluster.heartbeat(id)
            self.look()

    @rule(id=IDS)
    def leave(self, id: int) -> None:
        if id in self.cluster.state.brokers:
            self.cluster.heartbeat(id, want_shut_down=True)
            self.look()

    @rule(id=IDS)
    def fence(self, id: int) -> None:
        if id in self.cluster.state.brokers:
            self.cluster.fence(id)
            self.look()

    @rule(id=IDS)
    def unregister(self, id: int) -> None:
        self.do(UnregisterBroker(id))

    @rule(index=PARTITIONS, among=st.sets(IDS))
    def propose(self, index: int, among: set[int]) -> None:
        """The leader shrinks or expands its ISR; whoever joins it has caught up first."""
        if index >= len(self.partitions()) or self.partitions()[index].leader == NO_LEADER:
            return
        partition = self.partitions()[index]
        isr = tuple(id for id in partition.replicas if id in among or id == partition.leader)
        # The second answer: the change ended a reassignment that removed the leader from the replicas.
        accepted = self.cluster.alter("t", index, isr, recovering=0).name in ("NONE", "NEW_LEADER_ELECTED")
        if accepted and index in self.holders:
            self.holders[index].update(set(isr) & set(self.partitions()[index].isr))
        self.look()

    @rule(index=PARTITIONS, replicas=st.lists(IDS, min_size=1, max_size=4, unique=True) | st.none())
    def move(self, index: int, replicas: list[int] | None) -> None:
        self.do(Reassign((ReplicaAssignment("t", index, None if replicas is None else tuple(replicas)),)))

    @rule(kind=st.sampled_from([PREFERRED, UNCLEAN]), index=PARTITIONS)
    def elect(self, kind: int, index: int) -> None:
        self.do(ElectLeaders(kind, (("t", index),)))

    @rule()
    def grow(self) -> None:
        self.do(CreatePartitions((Growth("t", 6),)))

    @rule()
    def delete(self) -> None:
        if len(self.partitions()) > 4:
            self.do(DeleteTopics((DoomedTopic("t"),)))
            self.holders.clear()

    @rule(ms=st.sampled_from([2_000, 10_000]))
    def wait(self, ms: int) -> None:
        self.cluster.pass_time(ms)
        self.look()

    # --- what must hold

    @invariant()
    def the_parts_fit(self) -> None:
        brokers = self.cluster.state.brokers
        for partition in self.partitions():
            replicas = set(partition.replicas)
            assert set(partition.isr) | set(partition.elr) <= replicas, partition
            assert not set(partition.isr) & set(partition.elr), partition
            assert len(replicas) == len(partition.replicas) == len(partition.directories)
            assert set(partition.adding) | set(partition.removing) <= replicas
            assert not partition.elr or len(partition.isr) < self.min_isr
            if partition.leader != NO_LEADER:
                assert partition.leader in partition.isr and brokers[partition.leader].active, partition
                assert partition.last_known_elr == ()
            for id in partition.isr:
                assert id in brokers and brokers[id].active, partition

    @invariant()
    def whoever_may_lead_cleanly_has_everything(self) -> None:
        for partition in self.partitions():
            holders = self.holders.get(partition.index)
            if holders is None or partition.recovering:
                continue
            eligible = {*partition.isr} or {*partition.elr}
            assert eligible <= holders or partition.leader != NO_LEADER, (partition, holders)
            # The last one that has it is not forgotten, as long as it is a replica.
            left = holders & set(partition.replicas)
            assert not left or left & {*partition.isr, *partition.elr} or partition.leader != NO_LEADER

    @invariant()
    def the_index_is_what_the_partitions_say(self) -> None:
        assert self.cluster.state.index == recomputed(self.cluster.state)

    @invariant()
    def a_copy_and_a_snapshot_are_equal_and_apart(self) -> None:
        state = self.cluster.state
        copy, restored = state.copy(), ClusterState()
        for entry in snapshot(state):
            restored.apply(entry.record)
        for other in (copy, restored):
            assert (other.topics, other.brokers, other.index) == (state.topics, state.brokers, state.index)
        assert all(copy.topics[name] is not topic for name, topic in state.topics.items())


TestPartitions = Partitions.TestCase
TestPartitions.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
