"""Partitions that move: begun, called off, ended; and the directories they lie in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.bench import Cluster, verdict

from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.commands.assign_directories import AssignReplicasToDirs, Placement
from ottla.cluster.commands.reassign import ListMoves, Reassign, ReplicaAssignment
from ottla.cluster.entities import NO_LEADER, UNASSIGNED_DIRECTORY, PartitionState
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource, ResourceType


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(brokers=0)
    for id in range(1, 6):
        cluster.join(id, directories=2 if id == 5 else 1)
    cluster.create("t", -1, replication_factor=-1, assignments=((0, (1, 2, 3)),))
    return cluster


def move(cluster: Cluster, replicas: tuple[int, ...] | None, **options: Any) -> tuple[str, str | None] | None:
    (outcome,) = cluster.submit(Reassign((ReplicaAssignment("t", 0, replicas),), **options))
    return verdict(outcome.error)


def moving(cluster: Cluster) -> list[tuple[str, PartitionState]]:
    found: list[tuple[str, PartitionState]] = cluster.submit(ListMoves())
    assert found == cluster.submit(ListMoves((("t", (0, 7)), ("u", (0,)))))
    return found


def test_new_replicas_come_first_and_old_ones_go_when_they_are_in_sync(cluster: Cluster) -> None:
    assert move(cluster, (4, 5, 1)) is None
    found = cluster.partition("t")
    assert (found.replicas, found.adding, found.removing) == ((4, 5, 1, 2, 3), (4, 5), (2, 3))
    assert (found.leader, found.leader_epoch, found.isr) == (1, 0, (1, 2, 3))
    assert found.directory(4) == cluster.state.brokers[4].directories[0]
    assert found.directory(5) == UNASSIGNED_DIRECTORY
    assert [(name, each.index) for name, each in moving(cluster)] == [("t", 0)]
    assert cluster.alter("t", 0, (1, 2, 3, 4)) is ErrorCode.NONE
    assert cluster.partition("t").moving
    assert cluster.alter("t", 0, (1, 2, 3, 4, 5)) is ErrorCode.NONE
    found = cluster.partition("t")
    assert (found.replicas, found.isr, found.adding, found.removing) == ((4, 5, 1), (1, 4, 5), (), ())
    assert (found.leader, found.leader_epoch) == (1, 1)  # whoever was removed must hear of it
    assert moving(cluster) == []


def test_a_leader_that_has_to_go_learns_that_another_leads(cluster: Cluster) -> None:
    move(cluster, (4, 2, 3))
    assert cluster.alter("t", 0, (1, 2, 3, 4)) is ErrorCode.NEW_LEADER_ELECTED
    found = cluster.partition("t")
    assert (found.leader, found.leader_epoch, found.replicas, found.isr) == (4, 1, (4, 2, 3), (2, 3, 4))


def test_another_order_or_fewer_replicas_need_nobodys_help(cluster: Cluster) -> None:
    assert move(cluster, (3, 2, 1)) is None
    assert cluster.partition("t").replicas == (3, 2, 1) and cluster.partition("t").leader_epoch == 0
    assert move(cluster, (3, 1)) is None
    found = cluster.partition("t")
    assert (found.replicas, found.isr, found.moving, found.leader_epoch) == ((3, 1), (1, 3), False, 1)
    assert len(found.directories) == 2


def test_a_move_does_not_wait_for_a_replica_that_it_does_not_concern(cluster: Cluster) -> None:
    cluster.fence(3)
    move(cluster, (1, 4, 3))
    assert cluster.alter("t", 0, (1, 2, 4)) is ErrorCode.NONE
    found = cluster.partition("t")
    assert (found.replicas, found.isr, found.moving) == ((1, 4, 3), (1, 4), False)


def test_who_remains_must_be_in_sync_where_fewer_remain(cluster: Cluster) -> None:
    cluster.fence(3)
    move(cluster, (1, 3))
    found = cluster.partition("t")
    assert (found.replicas, found.isr, found.removing) == ((1, 3, 2), (1, 2), (2,))
    cluster.heartbeat(3)
    assert cluster.alter("t", 0, (1, 2, 3)) is ErrorCode.NONE
    assert cluster.partition("t").replicas == (1, 3)


def test_whoever_is_added_does_not_lead_for_being_there(cluster: Cluster) -> None:
    allow = ConfigAlteration("unclean.leader.election.enable", Op.SET, "true")
    cluster.alter("t", 0, (1,))
    for id in (1, 2, 3):
        cluster.fence(id)
    cluster.submit(IncrementalAlterConfigs(((Resource(ResourceType.TOPIC, "t"), (allow,)),)))
    assert move(cluster, (4, 1, 2)) is None
    found = cluster.partition("t")
    assert (found.leader, found.adding, found.removing) == (NO_LEADER, (4,), (3,))
    cluster.heartbeat(1)
    assert (cluster.partition("t").leader, cluster.partition("t").recovering) == (1, 0)


def test_a_move_is_called_off(cluster: Cluster) -> None:
    move(cluster, (4, 5))
    assert cluster.alter("t", 0, (1, 2, 4)) is ErrorCode.NONE
    assert move(cluster, None) is None
    found = cluster.partition("t")
    assert (found.replicas, found.isr, found.moving) == ((1, 2, 3), (1, 2), False)
    assert found.leader_epoch == 1  # 4 and 5 have left
    assert move(cluster, None) == ("NO_REASSIGNMENT_IN_PROGRESS", None)


def test_a_move_that_only_the_new_ones_survived_cannot_be_called_off(cluster: Cluster) -> None:
    move(cluster, (4, 5))
    assert cluster.alter("t", 0, (1, 4)) is ErrorCode.NONE
    cluster.fence(1)
    assert cluster.partition("t").isr == (4,)
    problem = "Unable to revert partition assignment for t:0 because it would require an unclean leader election."
    assert move(cluster, None) == ("INVALID_REPLICA_ASSIGNMENT", problem)


def test_another_move_replaces_the_one_under_way(cluster: Cluster) -> None:
    move(cluster, (1, 2, 4))
    assert move(cluster, (1, 2, 3)) is None
    found = cluster.partition("t")
    assert (found.replicas, found.moving, found.isr) == ((1, 2, 3), False, (1, 2, 3))
    move(cluster, (1, 2, 4))
    assert move(cluster, (1, 5, 4)) is None
    found = cluster.partition("t")
    assert (found.replicas, found.adding, found.removing) == ((1, 5, 4, 2, 3), (5,), (2, 3))


@pytest.mark.parametrize(
    ("replicas", "options", "error"),
    [
        ((), {}, ("INVALID_REPLICA_ASSIGNMENT", "The manual partition assignment includes an empty replica list.")),
        (
            (1, 9),
            {},
            (
                "INVALID_REPLICA_ASSIGNMENT",
                "The manual partition assignment includes broker 9, but no such broker is registered.",
            ),
        ),
        (
            (1, 2),
            {"may_change_replication_factor": False},
            ("INVALID_REPLICATION_FACTOR", "The replication factor is changed from 3 to 2"),
        ),
        (
            (1, 9),
            {"may_change_replication_factor": False},
            (
                "INVALID_REPLICA_ASSIGNMENT",
                "The manual partition assignment includes broker 9, but no such broker is registered.",
            ),
        ),
        ((1, 2, 4), {"may_change_replication_factor": False}, None),
    ],
)
def test_refused(
    cluster: Cluster, replicas: tuple[int, ...], options: dict[str, Any], error: tuple[str, str] | None
) -> None:
    assert move(cluster, replicas, **options) == error


def test_what_is_not_there_does_not_move(cluster: Cluster) -> None:
    outcomes = cluster.submit(Reassign((ReplicaAssignment("u", 0, (1,)), ReplicaAssignment("t", 3, (1,)))))
    assert [verdict(each.error) for each in outcomes] == [
        ("UNKNOWN_TOPIC_OR_PARTITION", "Unable to find a topic named u."),
        ("UNKNOWN_TOPIC_OR_PARTITION", "Unable to find partition t:3."),
    ]


def test_a_broker_says_where_its_replicas_lie_and_what_it_lost(cluster: Cluster) -> None:
    cluster.create("d", -1, replication_factor=-1, assignments=((0, (5, 1)), (1, (5, 1))))
    broker, topic_id = cluster.state.brokers[5], cluster.state.topics["d"].id
    first, second = broker.directories
    placements = (
        Placement(first, topic_id, 0),
        Placement(second, topic_id, 1),
        Placement(first, topic_id, 2),
        Placement(first, b"x" * 16, 0),
        Placement(first, cluster.state.topics["t"].id, 0),
    )
    errors = cluster.submit(AssignReplicasToDirs(5, broker.epoch, placements))
    assert [error.name for error in errors] == [
        "NONE",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "NOT_LEADER_OR_FOLLOWER",
    ]
    assert [cluster.partition("d", index).directory(5) for index in (0, 1)] == [first, second]
    cluster.heartbeat(5, offline_directories=(first,))
    assert cluster.state.brokers[5].directories == (second,)
    assert (cluster.partition("d", 0).leader, cluster.partition("d", 0).isr) == (1, (1,))
    assert (cluster.partition("d", 1).leader, cluster.partition("d", 1).isr) == (5, (5, 1))
    end = len(cluster.journal)
    cluster.heartbeat(5, offline_directories=(first,))
    assert len(cluster.journal) == end
    # A replica that turns out to lie in a directory that is gone leaves the ISR.
    cluster.submit(AssignReplicasToDirs(5, broker.epoch, (Placement(first, topic_id, 1),)))
    assert (cluster.partition("d", 1).leader, cluster.partition("d", 1).isr) == (1, (1,))


def test_a_cordoned_broker_gets_no_new_replicas(cluster: Cluster) -> None:
    cluster.heartbeat(4, cordoned=cluster.state.brokers[4].directories)
    cluster.create("c", 12, replication_factor=2)
    assert {id for each in cluster.state.topics["c"].partitions for id in each.replicas} == {1, 2, 3, 5}
    cluster.heartbeat(4, cordoned=())
    cluster.create("e", 12, replication_factor=2)
    assert {id for each in cluster.state.topics["e"].partitions for id in each.replicas} == {1, 2, 3, 4, 5}
