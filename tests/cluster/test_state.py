"""ClusterState: what each record means, and that a snapshot says the same as the records it replaces."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.bench import Cluster, broker

from ottla.cluster import entry
from ottla.cluster.commands.allocate_producer_ids import AllocateProducerIds, ProducerIdBlock
from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.commands.create_partitions import CreatePartitions, Growth
from ottla.cluster.commands.create_topics import CreateTopics, TopicToCreate
from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic
from ottla.cluster.commands.reassign import Reassign, ReplicaAssignment
from ottla.cluster.commands.start import Activate, RegisterController, StartBroker
from ottla.cluster.entities import BrokerChanged, Controller, PartitionChanged, PartitionsAdded
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import feature, snapshot
from ottla.cluster.state import ClusterState, JournalError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource
from ottla.wire.journal import cluster_metadata as journal

ID = b"\x01" * 16
PUBLIC = (
    "topics",
    "topic_by_id",
    "configs",
    "features",
    "brokers",
    "controllers",
    "next_producer_id",
    "quotas",
    "acls",
    "scram",
    "tokens",
    "partition_count",
)


def facts(state: ClusterState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in PUBLIC}


def replayed(entries: Any) -> ClusterState:
    """The state after the entries went through their bytes."""
    state = ClusterState()
    for item in entries:
        again = entry.decode(entry.encode(item))
        assert again.version == item.version
        state.apply(again.record)
    return state


def partition(index: int, topic_id: bytes = ID, **fields: Any) -> journal.PartitionRecord:
    known: dict[str, Any] = {
        "partition_id": index,
        "topic_id": topic_id,
        "replicas": [1, 2],
        "isr": [1, 2],
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 5,
    }
    return journal.PartitionRecord(**(known | fields))


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState()
    state.apply(journal.TopicRecord(name="t", topic_id=ID))
    return state


def test_partitions_may_come_in_any_order(state: ClusterState) -> None:
    assert state.apply(partition(2)) == ()
    assert state.apply(partition(1)) == ()
    (added,) = state.apply(partition(0))
    assert isinstance(added, PartitionsAdded)
    assert [each.index for each in added.partitions] == [0, 1, 2]
    assert [each.index for each in state.topics["t"].partitions] == [0, 1, 2]
    assert state.partition_count == 3


def test_a_new_leader_means_a_new_epoch(state: ClusterState) -> None:
    state.apply(partition(0))
    (change,) = state.apply(journal.PartitionChangeRecord(partition_id=0, topic_id=ID, leader=2, isr=[2]))
    assert isinstance(change, PartitionChanged)
    assert (change.new.leader, change.new.leader_epoch, change.new.isr) == (2, 4, (2,))
    assert change.new.partition_epoch == 6
    (change,) = state.apply(journal.PartitionChangeRecord(partition_id=0, topic_id=ID, isr=[2, 1]))
    assert isinstance(change, PartitionChanged)
    assert (change.new.leader, change.new.leader_epoch, change.new.partition_epoch) == (2, 4, 7)


def test_everything_about_a_partition_can_change(state: ClusterState) -> None:
    state.apply(partition(0))
    state.apply(
        journal.PartitionChangeRecord(
            partition_id=0,
            topic_id=ID,
            replicas=[3],
            adding_replicas=[3],
            removing_replicas=[1],
            leader_recovery_state=1,
            directories=[ID],
            eligible_leader_replicas=[2],
            last_known_elr=[1],
        )
    )
    found = state.topics["t"].partitions[0]
    assert (found.replicas, found.adding, found.removing, found.recovering) == ((3,), (3,), (1,), 1)
    assert (found.directories, found.elr, found.last_known_elr) == ((ID,), (2,), (1,))
    state.apply(journal.ClearElrRecord(topic_name=""))
    assert (state.topics["t"].partitions[0].elr, state.topics["t"].partitions[0].last_known_elr) == ((), ())


def test_a_transaction_takes_effect_at_its_end(state: ClusterState) -> None:
    state.apply(journal.BeginTransactionRecord(name="x"))
    assert state.apply(partition(0)) == ()
    assert state.in_transaction and not state.topics["t"].partitions
    changes = state.apply(journal.EndTransactionRecord())
    assert [type(change) for change in changes] == [PartitionsAdded]
    assert len(state.topics["t"].partitions) == 1 and not state.in_transaction


def test_an_aborted_transaction_never_was(state: ClusterState) -> None:
    state.apply(journal.BeginTransactionRecord(name="x"))
    state.apply(partition(0))
    assert state.apply(journal.AbortTransactionRecord(reason="x")) == ()
    assert not state.topics["t"].partitions and not state.in_transaction


@pytest.mark.parametrize(
    "records",
    [
        [journal.TopicRecord(name="t", topic_id=ID)],
        [journal.RemoveTopicRecord(topic_id=b"\x02" * 16)],
        [partition(0, topic_id=b"\x02" * 16)],
        [journal.PartitionChangeRecord(partition_id=0, topic_id=ID, leader=1)],
        [journal.BrokerRegistrationChangeRecord(broker_id=9, broker_epoch=1, fenced=1)],
        [journal.EndTransactionRecord()],
        [journal.BeginTransactionRecord(name="x"), journal.BeginTransactionRecord(name="y")],
        [
            journal.ProducerIdsRecord(broker_id=1, next_producer_id=1000),
            journal.ProducerIdsRecord(broker_id=1, next_producer_id=1000),
        ],
    ],
    ids=lambda records: type(records[-1]).__name__,
)
def test_a_journal_that_cannot_be(state: ClusterState, records: list[Any]) -> None:
    *good, bad = records
    for record in good:
        state.apply(record)
    with pytest.raises(JournalError):
        state.apply(bad)


def test_brokers_are_fenced_and_unfenced_in_both_ways() -> None:
    cluster = Cluster()
    state = cluster.state
    epoch = state.brokers[1].epoch
    change = journal.BrokerRegistrationChangeRecord
    (found,) = state.apply(change(broker_id=1, broker_epoch=epoch, fenced=1, in_controlled_shutdown=1, log_dirs=[ID]))
    assert isinstance(found, BrokerChanged) and found.new is not None
    assert found.new.fenced and found.new.in_controlled_shutdown and found.new.directories == (ID,)
    state.apply(journal.UnfenceBrokerRecord(id=1, epoch=epoch))
    assert not state.brokers[1].fenced
    state.apply(journal.FenceBrokerRecord(id=1, epoch=epoch))
    assert state.brokers[1].fenced
    with pytest.raises(JournalError, match="epoch"):
        state.apply(change(broker_id=1, broker_epoch=epoch + 1, fenced=-1))
    (found,) = state.apply(journal.UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch))
    assert isinstance(found, BrokerChanged) and found.new is None and not state.brokers


def test_producer_ids_are_never_given_twice() -> None:
    cluster = Cluster()
    ask = AllocateProducerIds(1, cluster.state.brokers[1].epoch)
    assert [cluster.submit(ask) for _ in range(3)] == [
        ProducerIdBlock(0, 1000),
        ProducerIdBlock(1000, 1000),
        ProducerIdBlock(2000, 1000),
    ]
    with pytest.raises(ApiError) as refused:
        cluster.submit(AllocateProducerIds(1, 7))
    assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_start_aborts_what_a_crash_left_open() -> None:
    cluster = Cluster()
    cluster.state.apply(journal.BeginTransactionRecord(name="x"))
    cluster.state.apply(journal.TopicRecord(name="half", topic_id=ID))
    cluster.submit(Activate(()))
    assert not cluster.state.in_transaction and "half" not in cluster.state.topics


def test_a_start_writes_again_what_a_cluster_begins_with() -> None:
    """A crash may have left only a part of it."""
    cluster = Cluster()
    levels = cluster.state.features.copy()
    cluster.state.features.clear()
    cluster.state.apply(journal.BeginTransactionRecord(name="x"))
    cluster.submit(Activate(tuple(feature(name, level) for name, level in levels.items())))
    assert not cluster.state.in_transaction and cluster.state.features == levels


@pytest.mark.parametrize(
    ("fields", "clean", "expected"),
    [
        ({}, True, (1, 3)),  # it led, and lost nothing
        ({}, False, (1, 4)),  # it led, and may have lost something
        ({"leader": -1, "isr": [1]}, True, (1, 4)),
        ({"leader": -1, "isr": [], "eligible_leader_replicas": [1], "last_known_elr": [1]}, True, (1, 4)),
        ({"leader": -1, "isr": [], "last_known_elr": [1]}, True, (1, 4)),
        ({"leader": -1, "isr": [2]}, True, (-1, 3)),  # somebody else has the data
        ({"leader": 2, "isr": [2]}, False, (2, 3)),
    ],
)
def test_a_starting_broker_leads_where_it_has_the_data(
    fields: dict[str, Any], clean: bool, expected: tuple[int, int]
) -> None:
    cluster = Cluster()
    cluster.state.apply(journal.TopicRecord(name="t", topic_id=ID))
    cluster.state.apply(partition(0, **fields))
    cluster.submit(StartBroker(broker(1)._replace(epoch=5000), clean))
    found = cluster.state.topics["t"].partitions[0]
    assert (found.leader, found.leader_epoch) == expected
    if expected[0] == 1:
        assert 1 in found.isr and found.elr == () and found.last_known_elr == ()
    assert not cluster.state.brokers[1].fenced


def full_state() -> Cluster:
    """One of everything."""
    cluster = Cluster(brokers=2)
    cluster.create("t", 3, configs=(("retention.ms", "5"),))
    cluster.submit(RegisterController(Controller(1, ID, (), cluster.state.brokers[1].features)))
    cluster.submit(AllocateProducerIds(1, cluster.state.brokers[1].epoch))
    quota = journal.ClientQuotaRecord
    entity = [
        quota.EntityData(entity_type="user", entity_name=None),
        quota.EntityData(entity_type="client-id", entity_name="c"),
    ]
    for record in (
        quota(entity=entity, key="producer_byte_rate", value=5.5, remove=False),
        quota(entity=entity, key="request_percentage", value=1.0, remove=False),
        quota(entity=entity, key="request_percentage", value=1.0, remove=True),
        journal.AccessControlEntryRecord(
            id=ID,
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:x",
            host="*",
            operation=2,
            permission_type=3,
        ),
        journal.UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        ),
        journal.DelegationTokenRecord(
            owner="User:o",
            requester="User:r",
            renewers=["User:x"],
            issue_timestamp=1,
            max_timestamp=2,
            expiration_timestamp=3,
            token_id="t",
        ),
    ):
        cluster.state.apply(record)
    return cluster


def test_a_snapshot_keeps_what_we_do_not_use_yet() -> None:
    state = full_state().state
    again = replayed(snapshot(state))
    assert facts(again) == facts(state)
    for record in (
        journal.RemoveAccessControlEntryRecord(id=ID),
        journal.RemoveUserScramCredentialRecord(name="u", mechanism=1),
        journal.RemoveDelegationTokenRecord(token_id="t"),
    ):
        again.apply(record)
    assert not again.acls and not again.scram and not again.tokens


NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "e"])
COMMANDS = st.one_of(
    st.builds(
        lambda name, count, value: CreateTopics((TopicToCreate(name, count, configs=(("retention.ms", value),)),)),
        NAMES,
        st.integers(0, 4),
        st.sampled_from(["1", "77", "bad"]),
    ),
    st.builds(lambda name: DeleteTopics((DoomedTopic(name),)), NAMES),
    st.builds(lambda name, count: CreatePartitions((Growth(name, count),)), NAMES, st.integers(0, 6)),
    st.builds(
        lambda type, name, key, op, value: IncrementalAlterConfigs(
            ((Resource(type, name), (ConfigAlteration(key, op, value),)),)
        ),
        st.sampled_from([2, 4, 32]),
        st.one_of(NAMES, st.sampled_from(["", "1"])),
        st.sampled_from(["cleanup.policy", "log.retention.ms", "consumer.session.timeout.ms", "segment.ms"]),
        st.sampled_from(list(Op)),
        st.sampled_from(["compact", "50000", "delete"]),
    ),
    st.builds(lambda clean: StartBroker(broker(1), clean), st.booleans()),
    st.just(AllocateProducerIds(1, 1)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(COMMANDS, max_size=25))
def test_journal_and_snapshot_give_the_same_state(commands: list[Any]) -> None:
    cluster = Cluster()
    for command in commands:
        cluster.submit(command)
    assert facts(replayed(cluster.journal)) == facts(cluster.state)
    assert facts(replayed(snapshot(cluster.state))) == facts(cluster.state)


def test_an_entry_of_an_unknown_kind_is_refused() -> None:
    good = entry.encode(MetadataEntry(journal.NoOpRecord()))
    for bad in (b"", good[:2], b"\x02" + good[1:], bytes((1, 99, 0)), bytes((1, 0x80, 1, 0))):
        with pytest.raises(JournalError):
            entry.decode(bad)


@pytest.mark.parametrize("level", [7, 14, 16, 17, 22, 23, 29, 30])
def test_records_say_what_their_version_can_hold_and_no_more(level: int) -> None:
    """The active controller applies what it has made, all others what they read: they must know the same."""
    cluster = Cluster(brokers=0)
    cluster.state.apply(journal.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    cluster.state.apply(journal.FeatureLevelRecord(name="metadata.version", feature_level=level))
    for id in (1, 2, 3):
        cluster.register(id, directories=2)
        cluster.heartbeat(id, cordoned=())
    cluster.create("t", 3, replication_factor=2)
    cluster.submit(Reassign((ReplicaAssignment("t", 0, (1, 2, 3)),)))
    cluster.fence(2)
    cluster.heartbeat(3, offline_directories=cluster.state.brokers[3].directories[:1])
    written = [*cluster.journal, *snapshot(cluster.state)]
    assert [entry.decode(entry.encode(each)) for each in written] == [each._replace(value=None) for each in written]


def test_the_version_of_the_quorum_is_no_feature_of_the_cluster() -> None:
    """Journals of older Kafkas have a record of it."""
    cluster = Cluster()
    before = cluster.state.features.copy()
    cluster.state.apply(journal.FeatureLevelRecord(name="kraft.version", feature_level=1))
    assert cluster.state.features == before


@pytest.mark.parametrize(("brokers", "count", "factor"), [(1, 3_000, 1), (3, 2_500, 3), (5, 40, 2)])
def test_many_partitions_at_once_are_what_they_are_one_by_one(brokers: int, count: int, factor: int) -> None:
    cluster = Cluster(brokers=brokers)
    one_by_one, at_once = cluster.state.copy(), cluster.state.copy()
    made = cluster.machine.decide(
        CreateTopics((TopicToCreate("t", count, factor), TopicToCreate("u", 7, 1))), 1
    ).records
    for each in made:
        one_by_one.apply(each.record)
        assert entry.encode(each) == entry.encode(each._replace(value=None))
    changes = at_once.apply_all(each.record for each in made)
    assert [len(change.partitions) for change in changes if isinstance(change, PartitionsAdded)] == [count, 7]
    assert at_once.topics == one_by_one.topics and at_once.index == one_by_one.index
    assert at_once.partition_count == one_by_one.partition_count == count + 7


def test_partitions_out_of_order_or_unusual_among_many() -> None:
    """Later ones before their time, one again, one of another leader, without a leader, or being moved."""

    def record(index: int, **said: Any) -> journal.PartitionRecord:
        usual = {"replicas": [1, 2], "isr": [1, 2], "removing_replicas": [], "adding_replicas": [], "leader": 1}
        usual |= {"leader_epoch": 0, "partition_epoch": 0, "topic_id": ID}
        return journal.PartitionRecord(partition_id=index, **(usual | said))

    records = [
        journal.TopicRecord(name="t", topic_id=ID),
        record(0), record(1, leader=2), record(2, leader=-1, isr=[2]), record(3, adding_replicas=[3]),
        record(5), record(4), record(1), record(6, eligible_leader_replicas=[2], isr=[1]),
    ]  # fmt: skip
    one_by_one, at_once = ClusterState(), ClusterState()
    for each in records:
        one_by_one.apply(each)
    at_once.apply_all(records)
    assert at_once.topics == one_by_one.topics and at_once.index == one_by_one.index
    assert at_once.partition_count == one_by_one.partition_count == 7
