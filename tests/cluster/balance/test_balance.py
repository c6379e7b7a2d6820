"""The balancer: what it never does, what it reaches, and a few plans by hand."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cluster.balance.loads import BalancePlan, BrokerLoad, PartitionLoad
from ottla.cluster.balance.plan import make_plan
from ottla.model.ids import TopicPartition


class Cluster(NamedTuple):
    brokers: list[BrokerLoad]
    partitions: list[PartitionLoad]


@st.composite
def clusters(
    draw: st.DrawFn, *, racks: bool = True, sizes: bool = True, away: bool = True, rates: bool = True
) -> Cluster:
    count = draw(st.integers(1, 6))
    brokers = [
        BrokerLoad(
            number,
            draw(st.sampled_from([None, "a", "b", "c"])) if racks else None,
            draw(st.sampled_from([1.0, 1.0, 2.0])) if sizes else 1.0,
            draw(st.sampled_from([None, None, 5_000])) if sizes else None,
            alive=not away or draw(st.integers(0, 4)) > 0,
            draining=away and draw(st.integers(0, 3)) == 0,
        )
        for number in range(count)
    ]
    factor = draw(st.integers(1, min(3, count)))
    partitions = [
        PartitionLoad(
            TopicPartition("t", index),
            tuple(draw(st.permutations(range(count)))[:factor]),
            draw(st.integers(0, 1_000)) if sizes else 100,
            draw(st.integers(0, 100)) if rates else 0.0,
        )
        for index in range(draw(st.integers(0, 24)))
    ]
    return Cluster(brokers, partitions)


def final(cluster: Cluster, plan: BalancePlan) -> dict[TopicPartition, tuple[int, ...]]:
    moved = {each.at: each.after for each in plan.moves}
    return {each.at: moved.get(each.at, each.replicas) for each in cluster.partitions}


def racks(cluster: Cluster, replicas: tuple[int, ...]) -> int:
    return len({cluster.brokers[each].rack or each for each in replicas})


@settings(max_examples=150, deadline=None)
@given(clusters(), st.booleans(), st.booleans())
def test_what_must_never_happen(cluster: Cluster, copies: bool, evens: bool) -> None:
    plan = make_plan(*cluster, copies=copies, evens=evens)
    takers = {each.id for each in cluster.brokers if each.takes}
    draining = {each.id for each in cluster.brokers if each.draining}
    after = final(cluster, plan)
    for each in cluster.partitions:
        replicas = after[each.at]
        assert len(set(replicas)) == len(replicas) == len(each.replicas)
        added = set(replicas) - set(each.replicas)
        assert added <= takers and (copies or not added)
        if not set(each.replicas) & draining:
            assert racks(cluster, replicas) >= racks(cluster, each.replicas)
        if not evens:  # then nothing moves but what drains
            assert set(each.replicas) - set(replicas) <= draining
            assert replicas == each.replicas or set(each.replicas) & draining
    for broker in cluster.brokers:
        grew = plan.after[broker.id].size_bytes > plan.before[broker.id].size_bytes
        if grew and broker.disk_bytes is not None:
            assert plan.after[broker.id].size_bytes <= broker.disk_bytes
    assert make_plan(cluster.brokers[::-1], cluster.partitions[::-1], copies=copies, evens=evens) == plan


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_a_drained_broker_ends_empty_unless_nobody_else_can_hold_it(cluster: Cluster) -> None:
    plan = make_plan(*cluster, evens=False)
    takers = [each for each in cluster.brokers if each.takes]
    left = sum(plan.after[each.id].replicas for each in cluster.brokers if each.draining) if takers else 0
    assert left == sum("cannot leave" in each for each in plan.problems)
    replicas = max((len(each.replicas) for each in cluster.partitions), default=0)
    if len(takers) >= replicas and all(each.disk_bytes is None for each in takers):
        assert left == 0


@settings(max_examples=150, deadline=None)
@given(clusters(racks=False, sizes=False, away=False, rates=False))
def test_equal_partitions_are_even_within_one(cluster: Cluster) -> None:
    plan = make_plan(*cluster)
    counts = [each.replicas for each in plan.after.values()]
    assert max(counts) - min(counts) <= 1
    leaders = [each.leaders for each in plan.after.values()]
    if cluster.partitions and len(cluster.partitions[0].replicas) == len(cluster.brokers):
        assert max(leaders) - min(leaders) <= 1
    # No more is moved than what was too much somewhere, and nothing a second time.
    target = sum(counts) / len(counts)
    surplus = sum(max(0, each.replicas - int(target)) for each in plan.before.values())
    assert sum(len(each.adding) for each in plan.moves) <= surplus
    after = final(cluster, plan)
    again = [each._replace(replicas=after[each.at]) for each in cluster.partitions]
    assert make_plan(cluster.brokers, again).moves == ()


@settings(max_examples=150, deadline=None)
@given(clusters(racks=False, away=False))
def test_it_never_gets_worse(cluster: Cluster) -> None:
    def squares(plan: BalancePlan, column: str, *, after: bool) -> float:
        found = plan.after if after else plan.before
        return math.fsum(float(getattr(found[each.id], column)) ** 2 / each.capacity for each in cluster.brokers)

    plan = make_plan(*cluster)
    assert squares(plan, "replicas", after=True) <= squares(plan, "replicas", after=False) + 1e-9
    if squares(plan, "replicas", after=True) >= squares(plan, "replicas", after=False) - 1e-9:
        assert squares(plan, "size_bytes", after=True) <= squares(plan, "size_bytes", after=False) + 1e-6
    leaders = make_plan(*cluster, copies=False)
    assert squares(leaders, "leaders", after=True) <= squares(leaders, "leaders", after=False) + 1e-9
    assert leaders.copied_bytes == 0


def spread(count: int, brokers: list[int], *, size_bytes: int = 10, factor: int = 2) -> list[PartitionLoad]:
    ring = brokers * 2
    return [
        PartitionLoad(
            TopicPartition("t", index),
            tuple(ring[index % len(brokers) : index % len(brokers) + factor]),
            size_bytes,
        )
        for index in range(count)
    ]


def test_a_new_broker_gets_its_share_and_not_more() -> None:
    plan = make_plan([BrokerLoad(each) for each in (1, 2, 3)], spread(12, [1, 2]))
    assert {each: (found.replicas, found.leaders) for each, found in plan.after.items()} == {
        1: (8, 4),
        2: (8, 4),
        3: (8, 4),
    }
    assert plan.copied_bytes == 80  # eight replicas, each once
    assert plan.before[3] == (0, 0, 0, 0.0)


def test_racks_are_used() -> None:
    brokers = [BrokerLoad(1, "a"), BrokerLoad(2, "a"), BrokerLoad(3, "b"), BrokerLoad(4, "b")]
    plan = make_plan(brokers, spread(8, [1, 2]))
    rack_of = {each.id: each.rack for each in brokers}
    assert all({rack_of[each] for each in move.after} == {"a", "b"} for move in plan.moves)
    assert len(plan.moves) == 8 and [each.replicas for each in plan.after.values()] == [4, 4, 4, 4]


def test_large_partitions_change_places_with_small_ones() -> None:
    sizes = {0: 1_000, 1: 1_000, 2: 1_000, 3: 10, 4: 10, 5: 10}
    partitions = [
        PartitionLoad(TopicPartition("t", index), (1 if index < 3 else 2,), size) for index, size in sizes.items()
    ]
    plan = make_plan([BrokerLoad(1), BrokerLoad(2)], partitions)
    assert [each.replicas for each in plan.after.values()] == [3, 3]
    assert sorted(each.size_bytes for each in plan.after.values()) == [1_020, 2_010]
    assert Counter(each.size_bytes for each in plan.moves) == {1_000: 1, 10: 1}


def test_busy_leaders_are_spread_without_copying() -> None:
    rates = {0: 100.0, 1: 90.0, 2: 0.0, 3: 0.0}
    partitions = [
        PartitionLoad(TopicPartition("t", index), (1, 2) if index < 2 else (2, 1), 50, rate)
        for index, rate in rates.items()
    ]
    plan = make_plan([BrokerLoad(1), BrokerLoad(2)], partitions)
    assert plan.copied_bytes == 0
    assert sorted((found.leaders, found.rate) for found in plan.after.values()) == [(2, 90.0), (2, 100.0)]


def test_capacity_is_a_share() -> None:
    plan = make_plan([BrokerLoad(1, capacity=1.0), BrokerLoad(2, capacity=3.0)], spread(8, [1], factor=1))
    assert [each.replicas for each in plan.after.values()] == [2, 6]


def test_bytes_do_not_undo_what_capacity_asks_for() -> None:
    """Found by Hypothesis: a broker with twice the share had more replicas, and gave one away for the bytes."""
    sizes = {0: (0, 0), 1: (1, 1), 2: (1, 1), 3: (1, 0), 4: (2, 0), 5: (2, 0), 6: (0, 0)}
    partitions = [PartitionLoad(TopicPartition("t", index), (at,), size) for index, (at, size) in sizes.items()]
    plan = make_plan([BrokerLoad(0), BrokerLoad(1, capacity=2.0), BrokerLoad(2)], partitions)
    assert [each.replicas for each in plan.after.values()] == [2, 3, 2]


def test_a_full_disk_takes_nothing() -> None:
    brokers = [BrokerLoad(1), BrokerLoad(2, disk_bytes=100)]
    plan = make_plan(brokers, spread(6, [1], factor=1, size_bytes=40))
    assert plan.after[2].size_bytes == 80


def test_what_cannot_be_drained_is_said() -> None:
    brokers = [BrokerLoad(1), BrokerLoad(2, draining=True)]
    plan = make_plan(brokers, spread(2, [1, 2]), evens=False)
    assert plan.problems == tuple(f"t-{index} cannot leave broker 2: no other broker may hold it" for index in (0, 1))
    # It leads nothing any more, though.
    assert plan.after[2].leaders == 0 and plan.copied_bytes == 0
    assert make_plan([BrokerLoad(2, draining=True)], spread(1, [2], factor=1)).problems == (
        "no broker may take anything",
    )
    assert make_plan([], []).moves == ()


def test_a_large_cluster_is_planned() -> None:
    brokers = [BrokerLoad(each, "abc"[each % 3]) for each in range(12)]
    partitions = [
        PartitionLoad(TopicPartition("t", index), (index % 9, (index + 1) % 9, (index + 2) % 9), index % 97 * 1_000)
        for index in range(1_000)
    ]
    plan = make_plan(brokers, partitions)
    counts = [each.replicas for each in plan.after.values()]
    leaders = [each.leaders for each in plan.after.values()]
    assert max(counts) - min(counts) <= 1 and max(leaders) - min(leaders) <= 1
    mean = sum(each.size_bytes for each in plan.after.values()) / 12
    assert all(0.9 * mean <= each.size_bytes <= 1.1 * mean for each in plan.after.values())
