"""Replica placement: which brokers hold the partitions of a new topic.

Aims, in this order: spread a partition over racks; spread leaders and replicas evenly over brokers; prefer brokers that
are not fenced. Never two replicas on one broker, never a fenced leader.

The brokers are laid out as one ring in which neighbours come from different racks. Partition p starts p steps into the
ring and takes the next brokers; every full turn also shifts the followers by one, so that a broker's load does not fall
on a single neighbour when it goes. The start is random, so that small topics do not all pile up on the first broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.cluster.entities import Broker
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BitSource


def place(brokers: Iterable[Broker], count: int, replication_factor: int, rng: BitSource) -> list[tuple[int, ...]]:
    """Choose the replicas of `count` partitions; the first of each is its leader."""
    usable = sorted(brokers, key=lambda broker: broker.id)
    active = [broker for broker in usable if not broker.fenced]
    _check(replication_factor, len(usable), len(active))
    leaders = _ring(active)
    ring = leaders + _ring([broker for broker in usable if broker.fenced])
    start = rng.getrandbits(32) % len(leaders)
    return [_replicas(leaders, ring, start + partition, replication_factor) for partition in range(count)]


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


def _ring(brokers: Sequence[Broker]) -> list[Broker]:
    """Brokers dealt out rack by rack: a1 b1 c1 a2 b2 …"""
    racks: dict[str, list[Broker]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack or "", []).append(broker)
    ordered = [racks[name] for name in sorted(racks)]
    longest = max(map(len, ordered), default=0)
    return [rack[turn] for turn in range(longest) for rack in ordered if turn < len(rack)]


def _replicas(leaders: list[Broker], ring: list[Broker], step: int, replication_factor: int) -> tuple[int, ...]:
    first = step % len(leaders)
    leader = leaders[first]
    if replication_factor == 1:
        return (leader.id,)
    others = [*leaders[first + 1 :], *leaders[:first]]
    shift = (step // len(leaders)) % len(others) if others else 0
    candidates = [*others[shift:], *others[:shift], *ring[len(leaders) :]]
    chosen = [leader]
    racks = {leader.rack}
    while len(chosen) < replication_factor:
        found = next((broker for broker in candidates if broker.rack not in racks), None)
        if found is None:  # every rack has one: start over with all racks
            racks.clear()
            found = candidates[0]
        candidates.remove(found)
        racks.add(found.rack)
        chosen.append(found)
    return tuple(broker.id for broker in chosen)
