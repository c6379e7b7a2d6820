"""Who leads, who is in sync, who is eligible: one row per rule."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from tests.cluster.bench import Cluster

from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.commands.alter_partition import AlterPartition, IsrChange, IsrMember
from ottla.cluster.commands.elect_leaders import PREFERRED, UNCLEAN, ElectLeaders
from ottla.cluster.entities import PartitionState
from ottla.cluster.features import ELR_VERSION, METADATA_VERSION
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.wire.journal import cluster_metadata as journal

ID = b"i" * 16


class After(NamedTuple):
    """What is looked at of a partition."""

    leader: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known: tuple[int, ...] = ()
    recovering: int = 0
    new_epoch: bool = True


def stage(*, elr: bool = True, min_isr: int = 1, unclean: bool = False, level: int = 30, **fields: Any) -> Cluster:
    """Brokers 1, 2, 3, and the partition t-0 as `fields` say."""
    cluster = Cluster(brokers=3)
    cluster.state.apply(journal.FeatureLevelRecord(name=METADATA_VERSION, feature_level=level))
    cluster.state.apply(journal.FeatureLevelRecord(name=ELR_VERSION, feature_level=int(elr)))
    cluster.state.apply(journal.TopicRecord(name="t", topic_id=ID))
    for name, value in (
        ("min.insync.replicas", str(min_isr)),
        ("unclean.leader.election.enable", str(unclean).lower()),
    ):
        record = journal.ConfigRecord(resource_type=2, resource_name="t", name=name, value=value)
        cluster.state.apply(record)
    for id in fields.pop("fenced", ()):
        cluster.state.apply(journal.FenceBrokerRecord(id=id, epoch=0))
    replicas = fields.setdefault("replicas", [1, 2, 3])
    values = {
        "partition_id": 0,
        "topic_id": ID,
        "isr": list(replicas),
        "removing_replicas": [],
        "adding_replicas": [],
        "leader": replicas[0],
        "leader_epoch": 7,
        "partition_epoch": 20,
        "directories": [cluster.state.brokers[id].directories[0] for id in replicas],
        **fields,
    }
    cluster.state.apply(journal.PartitionRecord(**values))
    return cluster


def seen(cluster: Cluster) -> After:
    found = cluster.partition("t")
    return After(found.leader, found.isr, found.elr, found.last_known_elr, found.recovering, found.leader_epoch == 8)


FENCED = [
    # min.insync.replicas, before, who is fenced, after
    ("a follower leaves the ISR", {}, [3], After(1, (1, 2), new_epoch=False)),
    ("the next replica in sync leads", {}, [1], After(2, (2, 3))),
    ("in the order of the replicas", {"replicas": [3, 1, 2], "isr": [2, 1, 3]}, [3], After(1, (2, 1))),
    ("below min ISR who leaves is eligible", {"min_isr": 2, "isr": [1, 2]}, [2], After(1, (1,), (2,), new_epoch=False)),
    ("and more of them", {"min_isr": 3}, [2, 3], After(1, (1,), (2, 3), new_epoch=False)),
    ("at min ISR nobody is", {"min_isr": 2}, [3], After(1, (1, 2), new_epoch=False)),
    ("the last in sync is eligible", {"isr": [1]}, [1], After(-1, (), (1,), (1,))),
    (
        "with who was before",
        {"min_isr": 2, "isr": [1], "eligible_leader_replicas": [2], "fenced": [2]},
        [1],
        After(-1, (), (1, 2), (1,)),
    ),
    (
        "one who is eligible leads when the ISR is empty",
        {"min_isr": 2, "isr": [1], "eligible_leader_replicas": [2]},
        [1],
        After(2, (2,), (1,)),
    ),
    ("without ELR the last in sync stays", {"elr": False, "isr": [1]}, [1], After(-1, (1,))),
    (
        "without ELR, unclean, any other leads",
        {"elr": False, "isr": [1], "unclean": True},
        [1],
        After(2, (2,), recovering=1),
    ),
    ("with ELR too", {"isr": [1], "unclean": True}, [1], After(2, (2,), recovering=1)),
    (
        "but rather one that is eligible",
        {"min_isr": 2, "isr": [1], "eligible_leader_replicas": [3], "unclean": True},
        [1],
        After(3, (3,), (1,)),
    ),
    (
        "before 3.6 a shrinking ISR is a new epoch",
        {"elr": False, "level": 11, "directories": []},
        [3],
        After(1, (1, 2)),
    ),
]


@pytest.mark.parametrize(("fields", "fenced", "after"), [row[1:] for row in FENCED], ids=[row[0] for row in FENCED])
def test_fencing(fields: dict[str, Any], fenced: list[int], after: After) -> None:
    cluster = stage(**fields)
    for id in fenced:
        cluster.fence(id)
    assert seen(cluster) == after


NOBODY = {"leader": -1, "fenced": [1, 2, 3]}
UNFENCED = [
    ("who is in the ISR leads", {**NOBODY, "elr": False, "isr": [2]}, 2, After(2, (2,))),
    ("who is not does not", {**NOBODY, "elr": False, "isr": [2]}, 1, After(-1, (2,), new_epoch=False)),
    (
        "who is eligible leads",
        {**NOBODY, "isr": [], "eligible_leader_replicas": [2, 3], "last_known_elr": [2], "min_isr": 2},
        3,
        After(3, (3,), (2,)),
    ),
    (
        "the last known leader only if nobody is eligible",
        {**NOBODY, "isr": [], "eligible_leader_replicas": [2], "last_known_elr": [1]},
        1,
        After(-1, (), (2,), (1,), new_epoch=False),
    ),
    ("else it leads, and recovers", {**NOBODY, "isr": [], "last_known_elr": [1]}, 1, After(1, (1,), recovering=1)),
    ("another one does not", {**NOBODY, "isr": [], "last_known_elr": [1]}, 2, After(-1, (), (), (1,), new_epoch=False)),
    ("unless unclean", {**NOBODY, "isr": [], "last_known_elr": [1], "unclean": True}, 2, After(2, (2,), recovering=1)),
]


@pytest.mark.parametrize(("fields", "id", "after"), [row[1:] for row in UNFENCED], ids=[row[0] for row in UNFENCED])
def test_unfencing(fields: dict[str, Any], id: int, after: After) -> None:
    cluster = stage(**fields)
    assert not cluster.heartbeat(id, metadata_offset=10_000).fenced
    assert seen(cluster) == after


RESTARTED = [
    # before, clean, after
    ("a clean restart keeps its eligibility", {"isr": [1]}, True, After(-1, (), (1,), (1,))),
    ("a crash loses it", {"isr": [1]}, False, After(-1, (), (), (1,))),
    (
        "a crash of one who is eligible too",
        {"min_isr": 2, "isr": [2], "leader": 2, "eligible_leader_replicas": [1, 3]},
        False,
        After(2, (2,), (3,), new_epoch=False),
    ),
    ("others lead meanwhile", {"min_isr": 3}, False, After(2, (2, 3))),
    ("or after a clean one, with it eligible", {"min_isr": 3}, True, After(2, (2, 3), (1,))),
]


@pytest.mark.parametrize(
    ("fields", "clean", "after"), [row[1:] for row in RESTARTED], ids=[row[0] for row in RESTARTED]
)
def test_a_new_incarnation(fields: dict[str, Any], clean: bool, after: After) -> None:
    cluster = stage(**fields)
    cluster.pass_time(20_000)
    cluster.register(1, incarnation=2, previous_epoch=cluster.state.brokers[1].epoch if clean else -1)
    assert seen(cluster) == after


def test_after_a_crash_the_last_known_leader_comes_back_and_recovers() -> None:
    cluster = stage(isr=[1], fenced=[2, 3])
    cluster.register(1, incarnation=2)
    assert seen(cluster) == After(-1, (), (), (1,))
    cluster.heartbeat(1)
    found = cluster.partition("t")
    assert (found.leader, found.isr, found.recovering, found.leader_epoch) == (1, (1,), 1, 9)
    assert cluster.alter("t", 0, (1,), recovering=0) is ErrorCode.NONE
    assert cluster.partition("t").recovering == 0


ASKED = [
    ("preferred", PREFERRED, {"leader": 2}, None, After(1, (1, 2, 3))),
    ("preferred is not in sync", PREFERRED, {"leader": 2, "isr": [2]}, "PREFERRED_LEADER_NOT_AVAILABLE", None),
    ("preferred leads", PREFERRED, {}, "ELECTION_NOT_NEEDED", None),
    (
        "preferred is fenced",
        PREFERRED,
        {"leader": 2, "fenced": [1], "elr": False},
        "PREFERRED_LEADER_NOT_AVAILABLE",
        None,
    ),
    ("unclean", UNCLEAN, {"leader": -1, "isr": [1], "fenced": [1], "elr": False}, None, After(2, (2,), recovering=1)),
    ("unclean, but somebody leads", UNCLEAN, {"leader": 2}, "ELECTION_NOT_NEEDED", None),
    (
        "unclean, but nobody is there",
        UNCLEAN,
        {"leader": -1, "isr": [1], "fenced": [1, 2, 3], "elr": False},
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        None,
    ),
]


@pytest.mark.parametrize(
    ("kind", "fields", "error", "after"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED]
)
def test_elections_by_wish(kind: int, fields: dict[str, Any], error: str | None, after: After | None) -> None:
    cluster = stage(**fields)
    before = seen(cluster)
    (outcome,) = cluster.submit(ElectLeaders(kind, (("t", 0),)))
    assert (outcome.error.code.name if outcome.error else None) == error
    assert seen(cluster) == (after or before)


def test_elections_by_wish_of_what_is_not_there_and_of_all() -> None:
    cluster = stage(leader=2)
    outcomes = cluster.submit(ElectLeaders(PREFERRED, (("u", 0), ("t", 5))))
    assert [each.error.code.name for each in outcomes] == ["UNKNOWN_TOPIC_OR_PARTITION"] * 2
    assert [each[:2] for each in cluster.submit(ElectLeaders(PREFERRED, None))] == [("t", 0)]
    assert cluster.partition("t").leader == 1
    assert cluster.submit(ElectLeaders(PREFERRED, None)) == []


def test_preferred_leaders_lead_again_by_the_clock() -> None:
    cluster = Cluster(brokers=0)
    for id in (1, 2, 3):
        cluster.join(id)
    cluster.create("t", 3, replication_factor=3)
    cluster.fence(1)
    assert len(cluster.state.index.unpreferred) == 1
    cluster.heartbeat(1)
    led = next(p for p in cluster.state.topics["t"].partitions if p.replicas[0] == 1)
    assert cluster.alter("t", led.index, (1, 2, 3)) is ErrorCode.NONE
    for _ in range(160):
        cluster.pass_time(2_000)
        for id in (1, 2, 3):
            cluster.heartbeat(id)
    assert cluster.partition("t", led.index).leader == 1 and not cluster.state.index.unpreferred


def test_an_unclean_election_when_the_topic_is_allowed_one_later() -> None:
    cluster = stage(leader=-1, isr=[1], fenced=[1], elr=False)
    record = journal.ConfigRecord(
        resource_type=2, resource_name="t", name="unclean.leader.election.enable", value="true"
    )
    cluster.state.apply(record)
    cluster.pass_time(299_000)
    assert cluster.partition("t").leader == -1
    cluster.pass_time(2_000)
    assert seen(cluster) == After(2, (2,), recovering=1)


@pytest.mark.parametrize("everywhere", [False, True])
def test_an_unclean_election_at_once_when_it_is_allowed_now(everywhere: bool) -> None:
    cluster = stage(leader=-1, isr=[1], fenced=[1], elr=False)
    resource = Resource(ResourceType.BROKER, "") if everywhere else Resource(ResourceType.TOPIC, "t")
    own = Resource(ResourceType.TOPIC, "t"), (ConfigAlteration("unclean.leader.election.enable", Op.DELETE, None),)
    cluster.submit(IncrementalAlterConfigs((own,)))
    cluster.pass_time(2_000)
    assert cluster.partition("t").leader == -1
    change = resource, (ConfigAlteration("unclean.leader.election.enable", Op.SET, "true"),)
    cluster.submit(IncrementalAlterConfigs((change,), validate_only=True))
    cluster.pass_time(1_000)
    assert cluster.partition("t").leader == -1
    cluster.submit(IncrementalAlterConfigs((change,)))
    cluster.pass_time(1_000)
    assert seen(cluster) == After(2, (2,), recovering=1)


PROPOSED = [
    # what is proposed instead of what is right, refusal
    ({"leader_epoch": 8}, "NOT_CONTROLLER"),
    ({"partition_epoch": 21}, "NOT_CONTROLLER"),
    ({"leader_epoch": 6}, "FENCED_LEADER_EPOCH"),
    ({"partition_epoch": 19}, "INVALID_UPDATE_VERSION"),
    ({"isr": (2,)}, "INVALID_REQUEST"),
    ({"isr": ()}, "INVALID_REQUEST"),
    ({"isr": (1, 1)}, "INVALID_REQUEST"),
    ({"isr": (1, 9)}, "INVALID_REQUEST"),
    ({"recovering": 1}, "INVALID_REQUEST"),
    ({"recovering": 7}, "INVALID_REQUEST"),
    ({"isr": (1, 3)}, "INELIGIBLE_REPLICA"),
    ({"sender": 2}, "INVALID_REQUEST"),
    ({"index": 4}, "UNKNOWN_TOPIC_OR_PARTITION"),
    ({"topic_id": b"x" * 16}, "UNKNOWN_TOPIC_ID"),
    ({"epochs": True}, "INELIGIBLE_REPLICA"),
    ({}, "NONE"),
]


@pytest.mark.parametrize(("wrong", "error"), PROPOSED, ids=lambda value: str(value))
def test_what_a_leader_may_propose(wrong: dict[str, Any], error: str) -> None:
    cluster = stage(fenced=[3])
    assert propose(cluster, **wrong) == error
    changed = cluster.partition("t")
    assert changed.isr == ((1, 2) if error == "NONE" else (1, 2, 3))


def propose(
    cluster: Cluster, *, sender: int = 1, isr: tuple[int, ...] = (1, 2), epochs: bool = False, **wrong: Any
) -> str:
    values = {"topic_id": ID, "index": 0, "leader_epoch": 7, "partition_epoch": 20, "recovering": 0, **wrong}
    members = tuple(IsrMember(id, 12345 if epochs else -1) for id in isr)
    broker = cluster.state.brokers[sender]
    (outcome,) = cluster.submit(AlterPartition(sender, broker.epoch, (IsrChange(isr=members, **values),)))
    state: PartitionState | None = outcome.state
    assert (state is None) == (outcome.error is not ErrorCode.NONE)
    if state is not None:
        assert state == cluster.partition("t")
    return str(outcome.error.name)
