"""CreatePartitions: topics grow, and only grow."""

from __future__ import annotations

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.create_partitions import CreatePartitions, Grown, Growth
from ottla.model.errors import ApiError, ErrorCode

MANUAL = "The manual partition assignment includes"


def grow(cluster: Cluster, *topics: Growth, validate_only: bool = False) -> list[Grown]:
    outcomes: list[Grown] = cluster.submit(CreatePartitions(topics, validate_only))
    return outcomes


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(brokers=2)
    cluster.create("t", 2)
    cluster.create("u", 1)
    return cluster


def test_new_partitions_follow_the_old_ones(cluster: Cluster) -> None:
    assert grow(cluster, Growth("t", 5)) == [Grown("t", None)]
    assert [state.index for state in cluster.state.topics["t"].partitions] == [0, 1, 2, 3, 4]
    assert cluster.state.partition_count == 6


def test_on_brokers_of_ones_choice(cluster: Cluster) -> None:
    assert grow(cluster, Growth("t", 4, ((2,), (1,)))) == [Grown("t", None)]
    assert [state.replicas for state in cluster.state.topics["t"].partitions[2:]] == [(2,), (1,)]


def test_validate_only(cluster: Cluster) -> None:
    assert grow(cluster, Growth("t", 4), validate_only=True) == [Grown("t", None)]
    assert len(cluster.state.topics["t"].partitions) == 2


def test_a_request_for_too_many_is_refused_as_a_whole(cluster: Cluster) -> None:
    with pytest.raises(ApiError) as refused:
        cluster.submit(CreatePartitions((Growth("u", 2), Growth("t", 2 + 10_000))))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


def test_names_given_twice_come_first(cluster: Cluster) -> None:
    outcomes = grow(cluster, Growth("t", 3), Growth("u", 2), Growth("t", 4))
    assert [(name, verdict(error)) for name, error in outcomes] == [
        ("t", ("INVALID_REQUEST", "Duplicate topic name.")),
        ("u", None),
    ]


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        (Growth("t", 2), ("INVALID_PARTITIONS", "Topic already has 2 partition(s).")),
        (
            Growth("t", 1),
            ("INVALID_PARTITIONS", "The topic t currently has 2 partition(s); 1 would not be an increase."),
        ),
        (Growth("nope", 2), ("UNKNOWN_TOPIC_OR_PARTITION", None)),
        (
            Growth("t", 4, ((1,),)),
            (
                "INVALID_REPLICA_ASSIGNMENT",
                "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
            ),
        ),
        (Growth("t", 3, ((),)), ("INVALID_REPLICA_ASSIGNMENT", f"{MANUAL} an empty replica list.")),
        (
            Growth("t", 3, ((7,),)),
            ("INVALID_REPLICA_ASSIGNMENT", f"{MANUAL} broker 7, but no such broker is registered."),
        ),
        (
            Growth("t", 3, ((1, 2),)),
            (
                "INVALID_REPLICA_ASSIGNMENT",
                f"{MANUAL} a partition with 2 replica(s), but this is not consistent with previous partitions, which "
                "have 1 replica(s).",
            ),
        ),
    ],
    ids=str,
)
def test_refused(cluster: Cluster, growth: Growth, expected: tuple[str, str | None]) -> None:
    (outcome,) = grow(cluster, growth)
    assert verdict(outcome.error) == expected
    assert len(cluster.state.topics["t"].partitions) == 2
