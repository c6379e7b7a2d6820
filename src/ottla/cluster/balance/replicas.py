"""Goals about where replicas are: brokers that drain end up empty, racks are used, counts are even."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.balance.layout import Layout
from ottla.model.ids import TopicPartition


def drain(layout: Layout) -> Iterator[str]:
    """Take everything from the brokers that drain; says what could not be taken."""
    for broker in layout.brokers.values():
        if broker.draining:
            for at in sorted(layout.held[broker.id]):
                target = _least(layout, at, broker.id)
                if target is None:
                    yield f"{at} cannot leave broker {broker.id}: no other broker may hold it"
                else:
                    layout.replace(at, broker.id, target)


def use_racks(layout: Layout) -> None:
    """Let partitions that have several replicas in one rack use another rack, if there is one."""
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
    """Move replicas from brokers with many to brokers with few, until no such move makes it more even."""
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
    """The replica whose move evens the bytes best as well; the smallest of those."""
    ideal = layout.ideal_shift(old, new)
    best: tuple[float, TopicPartition] | None = None
    for at in layout.held[old]:
        key = (abs(ideal - layout.partitions[at].size_bytes), at)
        # Most are not better than the best so far: whether they may move need not be known.
        if (best is None or key < best) and layout.may_replace(at, old, new):
            best = key
    return None if best is None else best[1]


def _least(layout: Layout, at: TopicPartition, old: int) -> int | None:
    """Who may take the replica and has the least; if only the racks forbid it, those give way: a broker that leaves
    is sure to take its rack's replica with it."""
    replicas = layout.replicas[at]
    allowed = [each for each in layout.takers if layout.may_replace(at, old, each)]
    if not allowed:
        size_bytes = layout.partitions[at].size_bytes
        others = [each for each in layout.takers if each not in replicas and layout.has_room(each, size_bytes)]
        racks = {each: layout.racks([each if at_old == old else at_old for at_old in replicas]) for each in others}
        allowed = [each for each in others if racks[each] == max(racks.values())]
    return min(allowed, key=lambda each: (_crowd(layout, each), layout.size_bytes[each], each), default=None)
