"""What our controller decides and what Kafka's own decides, on the same state: the same records, the same answers.

Kafka's ReplicationControlManager and ClusterControlManager run in a JVM (tests/java/controller). Both controllers are
asked the same; our records are then replayed by both, so every step starts from one state, and Kafka has to accept all
that we write. Requests go through our handlers and their bytes.
"""

from __future__ import annotations

import random

import pytest
from tests.cluster.bench import broker
from tests.compat.both_controllers import BROKERS, Both, text_of
from tests.support.java.programs import JavaServer

from ottla.cluster import features
from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.commands.elect_leaders import BalanceLeaders
from ottla.cluster.commands.fence import FenceBroker, UnregisterBroker
from ottla.cluster.commands.heartbeat import BrokerHeartbeat
from ottla.cluster.entities import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, Broker, PartitionState, Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import DIRECTORIES, ELR_VERSION, METADATA_VERSION
from ottla.cluster.snapshot import feature
from ottla.cluster.state import ClusterState
from ottla.model.resources import Resource
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.messages.cluster.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.cluster.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from ottla.wire.messages.cluster.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

STEPS = 60
SEEDS = 20
# metadata.version, whether ELR is on: directories are known from 17 on, ELR can be from 23 on.
LEVELS = [(30, True), (30, True), (30, False), (25, True), (21, False), (16, False), (11, False)]


# Values that are good where they are taken at all, by type of resource and name.
SETTINGS: dict[int, dict[str, list[str]]] = {
    2: {
        "cleanup.policy": ["delete", "compact", "compact,delete"],
        "min.insync.replicas": ["1", "2"],
        "retention.ms": ["5", "-1"],
        "leader.replication.throttled.replicas": ["0:1", "0:1,1:2"],
    },
    4: {
        "log.cleanup.policy": ["delete", "compact,delete"],
        "min.insync.replicas": ["1", "2"],
        "log.retention.ms": ["9"],
    },
}
LOST_DIRECTORY = bytes(15) + b"\x02"


class Walk:
    """Random steps of brokers, leaders and operators."""

    def __init__(self, kafka: JavaServer, seed: int) -> None:
        self.rng = random.Random(seed)
        self.both = Both(kafka, self.rng)
        level, elr = self.rng.choice(LEVELS)
        self.level = level
        self.both.write(feature(METADATA_VERSION, level), feature(ELR_VERSION, int(elr)))
        for id in BROKERS:
            self.register(id)
            self.heartbeat(id)
        self.create()

    @property
    def state(self) -> ClusterState:
        return self.both.ours.state

    def step(self) -> None:
        self.rng.choice(self.STEPS)(self)

    def broker(self) -> Broker | None:
        return self.state.brokers.get(self.rng.choice(BROKERS))

    def partition(self) -> tuple[Topic, PartitionState]:
        topic = self.rng.choice(list(self.state.topics.values()))
        return topic, self.rng.choice(topic.partitions)

    def replicas(self) -> list[int]:
        return self.rng.sample(BROKERS, self.rng.randint(1, 4))

    # --- brokers

    def register(self, id: int | None = None) -> None:
        id = id or self.rng.choice(BROKERS)
        old = self.state.brokers.get(id)
        if old is not None and not old.fenced:
            return
        self.both.incarnations[id] += 1
        new = broker(id, directories=2)
        clean = old is not None and self.rng.random() < 0.6
        asked = BrokerRegistrationRequest(
            broker_id=id,
            cluster_id="cluster",
            incarnation_id=bytes([id, self.both.incarnations[id]]) * 8,
            listeners=[],
            features=[
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in new.features
            ],
            rack=None,
            log_dirs=list(new.directories),
            previous_broker_epoch=old.epoch if clean and old is not None else -1,
        )
        self.both.same("register", asked)

    def heartbeat(self, id: int | None = None) -> None:
        found = self.state.brokers.get(id) if id else self.broker()
        if found is not None and found.fenced and not found.in_controlled_shutdown:
            self.both.compare(BrokerHeartbeat(found.id, found.epoch, 1 << 40), "unfence", broker=found.id)

    def leave(self) -> None:
        found = self.broker()
        if found is None or not found.active:
            return
        leads = any(each.leader == found.id for topic in self.state.topics.values() for each in topic.partitions)
        verb = "leave" if leads else "fence"
        self.both.compare(BrokerHeartbeat(found.id, found.epoch, 0, want_shut_down=True), verb, broker=found.id)

    def fence(self) -> None:
        found = self.broker()
        if found is not None and not found.fenced:
            self.both.compare(FenceBroker(found.id, found.epoch), "fence", broker=found.id)

    def unregister(self) -> None:
        found = self.broker()
        if found is not None and self.rng.random() < 0.3:
            self.both.compare(UnregisterBroker(found.id), "unregister", broker=found.id)

    def lose_disk(self) -> None:
        found = self.broker()
        if self.level < DIRECTORIES or self.state.index.leaderless:
            return  # Kafka looks at all replicas in the directory, not only at those in sync
        if found is not None and found.active and len(found.directories) == 2:
            lost = self.rng.choice(found.directories)
            command = BrokerHeartbeat(found.id, found.epoch, 0, offline_directories=(lost,))
            self.both.compare(command, "offline", broker=found.id, directories=[text_of(lost)])

    # --- leaders and replicas

    def near(self, epoch: int) -> int:
        """Mostly this one."""
        return epoch + self.rng.choice([0] * 8 + [-1, 1])

    def alter(self) -> None:
        topic, partition = self.partition()
        sender = self.state.brokers.get(partition.leader) or self.broker()
        if sender is None:
            return
        isr = self.rng.sample(partition.replicas, self.rng.randint(0, len(partition.replicas)))
        if self.rng.random() < 0.8:
            isr = [sender.id, *(id for id in isr if id != sender.id and id in self.state.brokers)]
            if self.rng.random() < 0.7:
                isr = [id for id in isr if self.state.brokers[id].active]
        Asked = AlterPartitionRequest.TopicData
        change = Asked.PartitionData(
            partition_index=partition.index,
            leader_epoch=self.near(partition.leader_epoch),
            new_isr_with_epochs=[
                Asked.PartitionData.BrokerState(
                    broker_id=id, broker_epoch=self.rng.choice([-1, self.near(self.state.brokers[id].epoch)])
                )
                for id in isr
                if id in self.state.brokers
            ],
            leader_recovery_state=self.rng.choice([0, 0, 0, partition.recovering, 1]),
            partition_epoch=self.near(partition.partition_epoch),
        )
        request = AlterPartitionRequest(
            broker_id=sender.id,
            broker_epoch=sender.epoch,
            topics=[Asked(topic_id=topic.id, partitions=[change])],
        )
        self.both.same("alter_partition", request, AlterPartitionResponse)

    def assign(self) -> None:
        topic, partition = self.partition()
        sender = self.broker()
        if sender is None:
            return
        Asked = AssignReplicasToDirsRequest.DirectoryData
        reserved = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY)
        directory = self.rng.choice([*broker(sender.id, directories=2).directories * 3, *reserved, bytes(range(16))])
        placed = [Asked.TopicData.PartitionData(partition_index=partition.index)]
        request = AssignReplicasToDirsRequest(
            broker_id=sender.id,
            broker_epoch=sender.epoch,
            directories=[Asked(id=directory, topics=[Asked.TopicData(topic_id=topic.id, partitions=placed)])],
        )
        self.both.same("assign_dirs", request, AssignReplicasToDirsResponse)

    # --- operators

    def reassign(self) -> None:
        topic, partition = self.partition()
        Asked = AlterPartitionReassignmentsRequest.ReassignableTopic
        replicas = None if self.rng.random() < 0.3 else self.replicas()
        if replicas is not None and not set(partition.adding) <= set(replicas):
            return  # such a move never ends at Kafka: it waits for replicas that it removes
        move = Asked.ReassignablePartition(partition_index=partition.index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=1,
            allow_replication_factor_change=self.rng.random() < 0.8,
            topics=[Asked(name=topic.name, partitions=[move])],
        )
        self.both.same("reassign", request, AlterPartitionReassignmentsResponse)

    def elect(self) -> None:
        topic, partition = self.partition()
        asked = [ElectLeadersRequest.TopicPartitions(topic=topic.name, partitions=[partition.index])]
        request = ElectLeadersRequest(
            election_type=self.rng.choice([0, 0, 1]),
            topic_partitions=None if self.rng.random() < 0.3 else asked,
            timeout_ms=1,
        )
        self.both.same("elect", request, ElectLeadersResponse)

    def balance(self) -> None:
        if not self.state.index.leaderless:  # those are not balanced but looked at by themselves
            self.both.compare(BalanceLeaders(), "balance")

    def create(self, *, well: bool = True) -> None:
        Asked = CreateTopicsRequest.CreatableTopic
        topic = Asked(
            name=f"t{len(self.state.topics)}",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                Asked.CreatableReplicaAssignment(
                    partition_index=index if well else self.rng.choice([index, 0, 3]),
                    broker_ids=self.rng.sample(BROKERS, 3) if well else self.some(),
                )
                for index in range(2)
            ],
            configs=[Asked.CreatableTopicConfig(name="min.insync.replicas", value=str(self.rng.randint(1, 3)))],
        )
        self.both.same("create_topics", CreateTopicsRequest(topics=[topic], timeout_ms=1), CreateTopicsResponse)

    def create_badly(self) -> None:
        self.create(well=False)

    def grow(self) -> None:
        topic, partition = self.partition()
        if len({len(each.replicas) for each in topic.partitions}) > 1:
            return  # Kafka takes the number of replicas of any one of them
        Asked = CreatePartitionsRequest.Topic
        count = len(topic.partitions) + self.rng.choice([-1, 0, 1, 1, 1, 2])
        lists = [Asked.Assignment(broker_ids=self.some(len(partition.replicas)))]
        request = CreatePartitionsRequest(
            topics=[Asked(name=topic.name, count=count, assignments=lists)], timeout_ms=1, validate_only=False
        )
        self.both.same("create_partitions", request, CreatePartitionsResponse)

    def some(self, count: int = 3) -> list[int]:
        """Brokers for a partition, not always such as can be."""
        if self.rng.random() < 0.7:
            return self.rng.sample(BROKERS, min(count, len(BROKERS)))
        return self.rng.choices(range(7), k=self.rng.randint(0, 3))

    def configure(self) -> None:
        topic, _ = self.partition()
        resource = self.rng.choice([*[Resource(2, topic.name)] * 2, Resource(4, ""), Resource(4, "1")])
        known = SETTINGS[resource.type]
        key = self.rng.choice(list(known))
        op = self.rng.choice(list(Op))
        value = None if op == Op.DELETE else self.rng.choice(known[key])
        if resource.name == "1" and 1 not in self.state.brokers:
            return
        command = IncrementalAlterConfigs(((resource, (ConfigAlteration(key, op, value),)),))
        asked = {"type": resource.type, "name": resource.name, "key": key, "op": op, "value": value}
        theirs, (outcome,) = self.both.compare(command, "alter_configs", **asked)
        assert theirs["codes"][resource.name] == (outcome.error.code if outcome.error else 0), (asked, outcome)

    def allow(self) -> None:
        topic, _ = self.partition()
        value = self.rng.choice(["true", "false"])
        name = "unclean.leader.election.enable"
        self.both.write(
            MetadataEntry(journal.ConfigRecord(resource_type=2, resource_name=topic.name, name=name, value=value))
        )

    def begin_anew(self) -> None:
        self.both.begin_anew()

    STEPS = (
        *(register, heartbeat, heartbeat, heartbeat, leave, fence, fence, unregister, lose_disk),
        *(alter, alter, alter, alter, alter, alter, assign, reassign, reassign, elect, balance, allow),
        *(create, create_badly, grow, begin_anew, configure),
    )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_decisions(java_controller: JavaServer, seed: int) -> None:
    walk = Walk(java_controller, seed)
    for _ in range(STEPS):
        walk.step()


def test_the_same_versions(java_controller: JavaServer) -> None:
    """What each metadata.version can do, and what other features need of it."""
    answer = java_controller.ask({"verb": "versions"})
    ours = [
        [
            level,
            name,
            features.partition_record_version(level),
            features.broker_record_version(level),
            level == 7 or features.metadata_changed_between(level - 1, level),
            features.transactions_supported(level),
            features.controllers_registered(level),
            *(level >= since for since in (DIRECTORIES, features.NO_BUMP_ON_SHRINK)),
            *(level >= since for since in (features.ELIGIBLE_LEADERS, features.CORDONED)),
        ]
        for level, name in features.METADATA_VERSION_NAMES.items()
    ]
    assert ours == [facts for facts in answer["levels"] if facts[0] in features.SUPPORTED_FEATURES[METADATA_VERSION]]
    needs = [
        [name, level, other, needed]
        for (name, level), others in features.DEPENDENCIES.items()
        for other, needed in others.items()
    ]
    assert needs == answer["needs"]
