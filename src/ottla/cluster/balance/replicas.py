"""The goals about where replicas are: draining brokers end up empty, partitions use several racks, counts are even."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.balance.layout import Layout
from ottla.model.ids import TopicPartition


def drain(layout: Layout) -> Iterator[str]:
    """Move every replica away from draining brokers; yield a message for each that could not be moved."""
    for broker in layout.brokers.values():
        if broker.draining:
            for at in sorted(layout.held[broker.id]):
                target = _least(layout, at, broker.id)
                if target is None:
                    yield f"{at} cannot leave broker {broker.id}: no other broker may hold it"
                else:
                    layout.replace(at, broker.id, target)


def use_racks(layout: Layout) -> None:
    """Spread partitions that have several replicas in one rack over more racks, if there are any."""
    racks_max = layout.racks(layout.takers)
    for at in layout.replicas:
        replicas = layout.replicas[at]
        while layout.racks(replicas) < min(len(replicas), racks_max):
            better = [
                (_crowd(layout, new), new, old)
                for old in replicas
                for new in layout.takers
                if layout.may_replace(at, old, new)
                and layout.racks([new if each == old else each for each in replicas]) > layout.racks(replicas)
            ]
            if not better:
                break
            _, new, old = min(better)
            layout.replace(at, old, new)
            replicas = layout.replicas[at]


def even_replicas(layout: Layout) -> None:
    """Move replicas from brokers with many to brokers with few, until no move makes the counts more even."""
    while _move_one(layout):
        pass


def _move_one(layout: Layout) -> bool:
    by_load = sorted(layout.takers, key=lambda each: (_crowd(layout, each), each))
    for new in by_load:
        for old in reversed(by_load):
            at = _best(layout, old, new) if layout.relief(old, new) > 0 else None
            if at is not None:
                layout.replace(at, old, new)
                return True
    return False


def _crowd(layout: Layout, broker: int) -> float:
    return layout.count(broker) / layout.capacity(broker)


def _best(layout: Layout, old: int, new: int) -> TopicPartition | None:
    """Return the replica on `old` whose size comes nearest to what evens the bytes, too."""
    ideal = layout.ideal_shift(old, new)
    best: tuple[float, TopicPartition] | None = None
    for at in layout.held[old]:
        key = (abs(ideal - layout.partitions[at].size_bytes), at)
        # The order of these checks saves time: `may_replace` is asked only of better candidates.
        if (best is None or key < best) and layout.may_replace(at, old, new):
            best = key
    return None if best is None else best[1]


def _least(layout: Layout, at: TopicPartition, old: int) -> int | None:
    """Return the least loaded broker that may take the replica. If only the rule about racks forbids all brokers, it is
    relaxed: a broker that drains takes a replica away from its rack in any case.
    """
    replicas = layout.replicas[at]
    allowed = [each for each in layout.takers if layout.may_replace(at, old, each)]
    if not allowed:
        size_bytes = layout.partitions[at].size_bytes
        others = [each for each in layout.takers if each not in replicas and layout.has_room(each, size_bytes)]
        racks = {each: layout.racks([each if at_old == old else at_old for at_old in replicas]) for each in others}
        allowed = [each for each in others if racks[each] == max(racks.values())]
    return min(allowed, key=lambda each: (_crowd(layout, each), layout.size_bytes[each], each), default=None)
