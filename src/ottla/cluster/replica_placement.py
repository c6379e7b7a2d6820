"""Replica placement: which brokers hold the partitions of a new topic.

Aims, in this order: spread a partition over racks; spread leaders and replicas evenly over brokers; prefer brokers that
are not fenced. Never two replicas on one broker, never a fenced leader.

The brokers form a ring in which neighbours come from different racks; partition p is led by the broker p steps into the
ring. If all racks have the same size, each follower is a fixed step of racks and rows away from its leader, so that in
a full turn of the ring every broker gets the same number of replicas; the steps change from turn to turn, so that the
load of a broker that fails is spread over several others. If racks differ in size, or fenced brokers are needed, each
follower is the least loaded broker of the racks that have the fewest replicas of the partition. The start is random, so
that small topics do not all use the first broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle, islice
from math import lcm

from ottla.cluster.entities import Broker
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BitSource


def place(brokers: Iterable[Broker], count: int, replication_factor: int, rng: BitSource) -> list[tuple[int, ...]]:
    """Choose the replicas of `count` partitions; the first of each is its leader."""
    usable = sorted(brokers, key=lambda broker: broker.id)
    active = [broker for broker in usable if not broker.fenced]
    _check(replication_factor, len(usable), len(active))
    leaders = _ring(active)
    start, turn = rng.getrandbits(32) % len(leaders), rng.getrandbits(16)
    racks = Counter(broker.rack or "" for broker in active)
    if replication_factor <= len(active) and len(set(racks.values())) == 1 and len(racks) == len(_racks(usable)):
        return _all_by_steps(leaders, len(racks), start, turn, count, replication_factor)
    ring = leaders + _ring([broker for broker in usable if broker.fenced])
    loads = dict.fromkeys((broker.id for broker in ring), 0)
    return [
        _by_load(leaders, ring, start + index, turn + index // len(leaders), replication_factor, loads)
        for index in range(count)
    ]


def _check(replication_factor: int, usable: int, active: int) -> None:
    if replication_factor <= 0:
        problem = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif active == 0:
        problem = "All brokers are currently fenced."
    elif replication_factor > usable:
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{usable} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    else:
        return
    raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)


def _racks(brokers: Iterable[Broker]) -> dict[str, list[Broker]]:
    racks: dict[str, list[Broker]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", []).append(broker)
    return racks


def _ring(brokers: Sequence[Broker]) -> list[Broker]:
    """Return the brokers in an order that alternates between racks: a1 b1 c1 a2 b2 …"""
    racks = _racks(brokers)
    ordered = [racks[name] for name in sorted(racks)]
    longest = max(map(len, ordered), default=0)
    return [rack[turn] for turn in range(longest) for rack in ordered if turn < len(rack)]


def _all_by_steps(
    ring: list[Broker], racks: int, start: int, turn: int, count: int, replication_factor: int
) -> list[tuple[int, ...]]:
    """Place all partitions by steps. The steps repeat after some turns of the ring, so the replicas of one period are
    reused.
    """
    rows = len(ring) // racks
    period = lcm(max(1, racks - 1), rows, max(1, rows - 1)) * len(ring)
    once = [
        _by_steps(ring, racks, start + index, turn + index // len(ring), replication_factor)
        for index in range(min(count, period))
    ]
    return list(islice(cycle(once), count))


def _by_steps(ring: list[Broker], racks: int, at: int, turn: int, replication_factor: int) -> tuple[int, ...]:
    """Place one partition. The ring is a table whose rows have one broker of each rack; followers go to other racks
    first.
    """
    rows = len(ring) // racks
    row, rack = divmod(at % len(ring), racks)
    chosen = [ring[row * racks + rack].id]
    for number in range(replication_factor - 1):
        round_, other = divmod(number, racks)
        if other < racks - 1:
            rack_step, row_step = 1 + (other + turn) % (racks - 1), (round_ + turn) % rows
        else:
            rack_step, row_step = 0, 1 + (round_ + turn) % (rows - 1)
        chosen.append(ring[(row + row_step) % rows * racks + (rack + rack_step) % racks].id)
    return tuple(chosen)


def _by_load(
    leaders: list[Broker], ring: list[Broker], at: int, turn: int, replication_factor: int, loads: dict[int, int]
) -> tuple[int, ...]:
    first = at % len(leaders)
    others = [*leaders[first + 1 :], *leaders[:first]]
    shift = turn % len(others) if others else 0
    candidates = [*others[shift:], *others[:shift], *ring[len(leaders) :]]
    chosen = [leaders[first]]
    while len(chosen) < replication_factor:
        racks = Counter(broker.rack for broker in chosen)
        # min() returns the first of equals. Order of importance: another rack, a broker that is not fenced, an even
        # load.
        found = min(candidates, key=lambda broker: (racks[broker.rack], broker.fenced, loads[broker.id]))
        candidates.remove(found)
        chosen.append(found)
    for broker in chosen:
        loads[broker.id] += 1
    return tuple(broker.id for broker in chosen)
