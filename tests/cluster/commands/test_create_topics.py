"""CreateTopics: the codes and words are those of a real Kafka 4.3.1 given the same requests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.create_topics import CreateTopics, TopicOutcome, TopicToCreate
from ottla.cluster.entities import PartitionsAdded, TopicCreated
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.resources import Resource


def create(cluster: Cluster, *topics: TopicToCreate, validate_only: bool = False) -> list[TopicOutcome]:
    outcomes: list[TopicOutcome] = cluster.submit(CreateTopics(topics, validate_only))
    return outcomes


def test_a_topic_with_partitions_and_configs() -> None:
    cluster = Cluster()
    (outcome,) = create(
        cluster, TopicToCreate("t", 3, 1, configs=(("retention.ms", "5"), ("cleanup.policy", "compact")))
    )
    assert outcome == TopicOutcome("t", None, outcome.id, 3, 1)
    topic = cluster.state.topics["t"]
    assert topic.id == outcome.id != NO_ID
    assert cluster.state.topic_by_id[topic.id] is topic
    assert [state.index for state in topic.partitions] == [0, 1, 2]
    first = topic.partitions[0]
    assert (first.replicas, first.isr, first.leader, first.leader_epoch) == ((1,), (1,), 1, 0)
    assert first.directories == cluster.state.brokers[1].directories
    assert cluster.state.configs[Resource(2, "t")] == {"retention.ms": "5", "cleanup.policy": "compact"}
    assert isinstance(cluster.changes[0], TopicCreated)
    assert sum(isinstance(change, PartitionsAdded) for change in cluster.changes) == 3


def test_the_records_stand_in_kafkas_order() -> None:
    cluster = Cluster()
    before = len(cluster.journal)
    create(cluster, TopicToCreate("t", 2, 1, configs=(("retention.ms", "5"),)))
    names = [type(entry.record).__name__ for entry in cluster.journal[before:]]
    assert names == ["TopicRecord", "ConfigRecord", "PartitionRecord", "PartitionRecord"]


def test_defaults_come_from_the_broker() -> None:
    cluster = Cluster(brokers=3, properties={"num.partitions": "4", "default.replication.factor": "2"})
    (outcome,) = create(cluster, TopicToCreate("t"))
    assert (outcome.partitions, outcome.replication_factor) == (4, 2)


def test_validate_only_writes_nothing_and_answers_the_same() -> None:
    cluster = Cluster()
    before = len(cluster.journal)
    for _ in range(2):
        (outcome,) = create(cluster, TopicToCreate("t", 2, 1), validate_only=True)
        assert outcome.error is None and outcome.partitions == 2
    assert len(cluster.journal) == before
    assert not cluster.state.topics


def test_names_given_twice_and_the_metadata_topic_come_last() -> None:
    outcomes = create(
        Cluster(),
        TopicToCreate("twice"),
        TopicToCreate("__cluster_metadata"),
        TopicToCreate("good"),
        TopicToCreate("twice"),
    )
    assert [(outcome.name, verdict(outcome.error)) for outcome in outcomes] == [
        ("good", None),
        ("twice", ("INVALID_REQUEST", "Duplicate topic name.")),
        (
            "__cluster_metadata",
            ("INVALID_REQUEST", "Creation of internal topic __cluster_metadata is prohibited."),
        ),
    ]


def test_collisions_with_what_exists_but_not_within_a_request() -> None:
    cluster = Cluster()
    assert [outcome.error for outcome in create(cluster, TopicToCreate("a.b"), TopicToCreate("a_b"))] == [None, None]
    (outcome,) = create(cluster, TopicToCreate("a.b"))
    assert verdict(outcome.error) == ("TOPIC_ALREADY_EXISTS", "Topic 'a.b' already exists.")
    cluster.create("c_d")
    (outcome,) = create(cluster, TopicToCreate("c.d"))
    assert verdict(outcome.error) == ("INVALID_TOPIC_EXCEPTION", "Topic 'c.d' collides with existing topic: c_d")


MANUAL = "The manual partition assignment includes"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"name": "a b"},
        "INVALID_TOPIC_EXCEPTION",
        "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
    ),
    ({"name": ""}, "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
    ({"partitions": 0}, "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."),
    ({"partitions": -2}, "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."),
    (
        {"partitions": 0, "replication_factor": 0},
        "INVALID_REPLICATION_FACTOR",
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    (
        {"replication_factor": 2},
        "INVALID_REPLICATION_FACTOR",
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
    ),
    (
        {"partitions": 1, "assignments": ((0, (1,)),)},
        "INVALID_REQUEST",
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        {"replication_factor": 1, "assignments": ((0, (1,)),)},
        "INVALID_REQUEST",
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    (
        {"assignments": ((0, (1,)), (0, (1,)))},
        "INVALID_REPLICA_ASSIGNMENT",
        "Found multiple manual partition assignments for partition 0",
    ),
    (
        {"assignments": ((1, (1,)),)},
        "INVALID_REPLICA_ASSIGNMENT",
        "partitions should be a consecutive 0-based integer sequence",
    ),
    ({"assignments": ((0, ()),)}, "INVALID_REPLICA_ASSIGNMENT", f"{MANUAL} an empty replica list."),
    (
        {"assignments": ((0, (7,)),)},
        "INVALID_REPLICA_ASSIGNMENT",
        f"{MANUAL} broker 7, but no such broker is registered.",
    ),
    ({"assignments": ((0, (1, 1)),)}, "INVALID_REPLICA_ASSIGNMENT", f"{MANUAL} the broker 1 more than once."),
    (
        {"configs": (("retention.ms", None), ("segment.ms", None))},
        "INVALID_CONFIG",
        "Null value not supported for topic configs: retention.ms,segment.ms",
    ),
    ({"configs": (("nope", "1"),)}, "INVALID_CONFIG", "Unknown topic config name: nope"),
    (
        {"configs": (("retention.ms", "abc"),)},
        "INVALID_CONFIG",
        "Invalid value abc for configuration retention.ms: Not a number of type LONG",
    ),
    (
        {"configs": (("cleanup.policy", "bad"),)},
        "INVALID_CONFIG",
        "Invalid value bad for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    (
        {"configs": (("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "2"))},
        "INVALID_CONFIG",
        "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (2)",
    ),
]


@pytest.mark.parametrize(("asked", "code", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused(asked: dict[str, Any], code: str, message: str) -> None:
    cluster = Cluster()
    before = len(cluster.journal)
    (outcome,) = create(cluster, TopicToCreate(**{"name": "t", **asked}))
    assert verdict(outcome.error) == (code, message)
    assert len(cluster.journal) == before


def test_assigned_by_hand() -> None:
    cluster = Cluster(brokers=3)
    (outcome,) = create(cluster, TopicToCreate("t", assignments=((1, (2, 3)), (0, (3, 1)))))
    assert (outcome.partitions, outcome.replication_factor) == (2, 2)
    assert [(state.replicas, state.leader) for state in cluster.state.topics["t"].partitions] == [
        ((3, 1), 3),
        ((2, 3), 2),
    ]


def test_partitions_by_hand_must_be_alike() -> None:
    (outcome,) = create(Cluster(brokers=3), TopicToCreate("t", assignments=((0, (1, 2)), (1, (3,)))))
    assert verdict(outcome.error) == (
        "INVALID_REPLICA_ASSIGNMENT",
        f"{MANUAL} a partition with 1 replica(s), but this is not consistent with previous partitions, which have 2 "
        "replica(s).",
    )


def test_one_bad_topic_does_not_hurt_the_others() -> None:
    outcomes = create(Cluster(), TopicToCreate("a", 0), TopicToCreate("b", 1))
    assert [outcome.error is None for outcome in outcomes] == [False, True]


def test_a_request_for_too_many_partitions_is_refused_as_a_whole() -> None:
    with pytest.raises(ApiError) as refused:
        Cluster().submit(CreateTopics((TopicToCreate("a", 1), TopicToCreate("b", 10_000))))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION
