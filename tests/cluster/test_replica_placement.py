"""Replica placement: spread over racks, even over brokers, never twice on one."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.bench import broker

from ottla.cluster.replica_placement import place
from ottla.model.errors import ApiError, ErrorCode


@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8),
    fenced=st.sets(st.integers(1, 8)),
    count=st.integers(1, 40),
    factor=st.integers(1, 8),
    seed=st.integers(0, 1000),
)
def test_every_partition_is_placed_soundly(
    racks: list[str | None], fenced: set[int], count: int, factor: int, seed: int
) -> None:
    brokers = [broker(id, rack=rack, fenced=id in fenced) for id, rack in enumerate(racks, 1)]
    active = {each.id for each in brokers if not each.fenced}
    if not active or factor > len(brokers):
        with pytest.raises(ApiError) as refused:
            place(brokers, count, factor, random.Random(seed))
        assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
        return
    placed = place(brokers, count, factor, random.Random(seed))
    assert len(placed) == count
    rack_of = {each.id: each.rack for each in brokers}
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] in active
        assert len({rack_of[id] for id in replicas}) == min(factor, len({each.rack for each in brokers}))
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(id, 0) for id in active) <= 1


def test_followers_change_from_turn_to_turn() -> None:
    brokers = [broker(id, fenced=False) for id in range(1, 5)]
    placed = place(brokers, 12, 2, random.Random(1))
    followers: dict[int, set[int]] = {}
    for leader, follower in placed:
        followers.setdefault(leader, set()).add(follower)
    assert all(len(found) == 3 for found in followers.values())


def test_fenced_brokers_only_when_there_is_no_other() -> None:
    brokers = [broker(1, fenced=False), broker(2, fenced=False), broker(3, fenced=True)]
    assert all(3 not in replicas for replicas in place(brokers, 6, 2, random.Random(1)))
    assert all(replicas[-1] == 3 for replicas in place(brokers, 6, 3, random.Random(1)))


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    factor=st.integers(1, 5),
    turns=st.integers(1, 6),
    seed=st.integers(0, 1000),
)
def test_everybody_gets_the_same(sizes: list[int], factor: int, turns: int, seed: int) -> None:
    """Exactly, where racks are alike; else as far as the racks let them."""
    racks = [f"r{rack}" for rack, size in enumerate(sizes) for _ in range(size)]
    brokers = [broker(id, rack=rack, fenced=False) for id, rack in enumerate(racks, 1)]
    factor = min(factor, len(brokers))
    placed = place(brokers, len(brokers) * turns, factor, random.Random(seed))
    shares = Counter(id for replicas in placed for id in replicas)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {turns}
    if len(set(sizes)) == 1:
        assert set(shares.values()) == {turns * factor}
    else:
        for rack in set(racks):
            within = [shares[each.id] for each in brokers if each.rack == rack]
            assert max(within) - min(within) <= 2


def test_when_a_broker_goes_all_others_take_over() -> None:
    brokers = [broker(id, rack="abc"[id % 3], fenced=False) for id in range(1, 10)]
    placed = place(brokers, 180, 3, random.Random(5))
    heirs = Counter(replicas[1] for replicas in placed if replicas[0] == 1)
    assert set(heirs) == {id for id in range(1, 10) if id % 3 != 1} and max(heirs.values()) <= 4
