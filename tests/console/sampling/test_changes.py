"""What changed between two samples, in sentences."""

from __future__ import annotations

from ottla.client.admin.groups import GroupListing
from ottla.client.metadata import AdvertisedBroker, PartitionInfo, TopicInfo
from ottla.console.sampling.changes import ClusterChange, changed_groups, changed_settings, changes_between
from ottla.model.ids import TopicPartition
from ottla.operations.sampling.sample import TopSample


def sample(*partitions: PartitionInfo, fenced: frozenset[int] = frozenset(), brokers: int = 3) -> TopSample:
    listed = [AdvertisedBroker(each, "h", 9092, None, each in fenced) for each in range(1, brokers + 1)]
    return TopSample(0.0, listed, [TopicInfo("t", bytes(16), False, partitions)] if partitions else [])


def partition(leader: int, isr: tuple[int, ...], replicas: tuple[int, ...] = (1, 2, 3)) -> PartitionInfo:
    return PartitionInfo(0, leader, 1, replicas, isr)


def said(found: list[ClusterChange]) -> list[tuple[str, str]]:
    return [(each.what, each.mood) for each in found]


ALL_IN = sample(partition(1, (1, 2, 3)))
NO_MOVES: frozenset[TopicPartition] = frozenset()


def test_a_broker_that_goes_and_comes() -> None:
    down = sample(partition(2, (2, 3)), fenced=frozenset({1}))
    assert said(changes_between(ALL_IN, down, NO_MOVES, 0)) == [
        ("broker 1 is down", "bad"),
        ("partition t-0 moved to another leader", "plain"),
        ("partition t-0 is under-replicated", "fair"),
    ]
    assert said(changes_between(down, ALL_IN, NO_MOVES, 0)) == [
        ("broker 1 is up", "good"),
        ("partition t-0 moved to another leader", "plain"),
        ("partition t-0 has all replicas in sync again", "good"),
    ]
    assert said(changes_between(ALL_IN, ALL_IN, NO_MOVES, 0)) == []


def test_a_partition_without_a_leader() -> None:
    lost = sample(partition(-1, (1,)))
    assert ("partition t-0 has no leader", "bad") in said(changes_between(ALL_IN, lost, NO_MOVES, 0))
    assert ("partition t-0 has a leader again", "good") in said(changes_between(lost, ALL_IN, NO_MOVES, 0))


def test_a_replica_that_is_coming_is_not_behind() -> None:
    moving = sample(partition(1, (1, 2, 3), (1, 2, 3, 4)))
    assert said(changes_between(ALL_IN, moving, {TopicPartition("t", 0)}, 0)) == []
    assert said(changes_between(ALL_IN, moving, NO_MOVES, 0)) == []


def test_brokers_that_join_and_leave() -> None:
    more = sample(partition(1, (1, 2, 3)), brokers=4)
    assert said(changes_between(ALL_IN, more, NO_MOVES, 0)) == [("broker 4 joined the cluster", "good")]
    assert said(changes_between(more, ALL_IN, NO_MOVES, 0)) == [("broker 4 is gone", "fair")]


def test_groups_that_rebalance() -> None:
    def with_state(state: str) -> TopSample:
        return TopSample(0.0, groups=[GroupListing("g", "classic", state, "consumer")])

    stable, rebalancing = with_state("Stable"), with_state("PreparingRebalance")
    assert said(changed_groups(stable, rebalancing, 0)) == [("group g rebalances", "fair")]
    assert said(changed_groups(rebalancing, stable, 0)) == [("group g is stable", "good")]
    assert said(changed_groups(stable, with_state("Empty"), 0)) == [("group g has no members any more", "fair")]
    assert said(changed_groups(stable, TopSample(0.0), 0)) == [("group g ended", "plain")]


def test_settings() -> None:
    before = {"topic t": {"retention.ms": "1", "gone": "x"}, "broker 1": {}, "topic old": {"a": "b"}}
    now = {"topic t": {"retention.ms": "2"}, "broker 1": {"new": "y"}, "topic young": {"a": "b"}}
    assert [(each.what, each.to) for each in changed_settings(before, now, 0)] == [
        ("broker 1: new is 'y'", "/brokers/1"),
        ("topic t: gone is back to its default", "/topics/t"),
        ("topic t: retention.ms is '2', was '1'", "/topics/t"),
    ]


def test_names_that_are_no_step_of_a_path_have_an_address() -> None:
    def groups(name: str, state: str) -> TopSample:
        return TopSample(0.0, groups=[GroupListing(name, "classic", state, "consumer")])

    for name in ("..", ".", ""):
        found = changed_groups(groups(name, "Stable"), groups(name, "Empty"), 0)
        assert [each.to for each in found] == [f"/groups/~?named={name}"]
