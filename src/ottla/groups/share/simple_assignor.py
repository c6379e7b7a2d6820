"""The simple assignor of share groups: every partition gets about equally many readers, and keeps those it has.

If all members read the same topics, the partitions of all topics are assigned together, else topic by topic among its
readers. With more members than partitions, several members share a partition; with fewer, members get several
partitions. All partitions have the same number of readers, rounded up so that every member gets a partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.groups.assign.spec import GroupSpec, Partitions, frozen

Named = tuple[bytes, int]  # a topic's id and a partition


def simple(spec: GroupSpec, assignable: Partitions) -> dict[str, Partitions]:
    """Assign only the partitions in `assignable` (those with initialised state)."""
    pools: list[tuple[list[str], list[bytes]]]
    members = sorted(spec.members)
    topics = sorted(spec.partitions)
    if spec.homogeneous:
        pools = [(members, topics)]
    else:
        pools = [([each for each in members if topic in spec.members[each].topics], [topic]) for topic in topics]
    found: dict[str, dict[bytes, set[int]]] = {member: {} for member in members}
    for readers, about in pools:
        shared = [
            (topic, partition)
            for topic in about
            for partition in range(spec.partitions[topic])
            if partition in assignable.get(topic, ())
        ]
        owned = {reader: [each for each in shared if _owns(spec, reader, each)] for reader in readers}
        for reader, partitions in _share_out(readers, shared, owned).items():
            for topic, partition in partitions:
                found[reader].setdefault(topic, set()).add(partition)
    return {member: frozen(partitions) for member, partitions in found.items()}


def _owns(spec: GroupSpec, reader: str, named: Named) -> bool:
    topic, partition = named
    return partition in spec.members[reader].owned.get(topic, ())


def _share_out(
    readers: Sequence[str], shared: Sequence[Named], owned: Mapping[str, list[Named]]
) -> dict[str, list[Named]]:
    """Return the partitions of `shared` for each reader, with as few changes to the owned ones as possible."""
    if not readers or not shared:
        return {}
    sharing = -(-len(readers) // len(shared))  # readers per partition
    total = sharing * len(shared)
    quota = _quotas(readers, owned, total)
    kept: dict[str, list[Named]] = {}
    readers_of: dict[Named, list[str]] = {named: [] for named in shared}
    for reader in readers:
        # Members with too many partitions give up their first ones, partitions with too many readers their last ones.
        mine = owned[reader][max(0, len(owned[reader]) - quota[reader]) :]
        kept[reader] = [named for named in mine if len(readers_of[named]) < sharing]
        for named in kept[reader]:
            readers_of[named].append(reader)
    hungry = [reader for reader in readers if len(kept[reader]) < quota[reader]]
    for named in shared:
        missing = sharing - len(readers_of[named])
        for reader in [each for each in hungry if each not in readers_of[named]][:missing]:
            kept[reader].append(named)
            hungry.remove(reader)
            if len(kept[reader]) < quota[reader]:
                hungry.append(reader)  # round robin: a reader that got a partition goes to the end of the queue
    return kept


def _quotas(readers: Sequence[str], owned: Mapping[str, list[Named]], total: int) -> dict[str, int]:
    """Return how many partitions each reader gets: `total` together, and one more or less than the others at most.

    Readers that own more than the smaller number get the larger one first, so that they keep what they have when
    members come and go. What is left of the larger numbers is spread evenly over the others, as Kafka spreads all.
    """
    smaller, larger = divmod(total, len(readers))
    keeping = [reader for reader in readers if len(owned[reader]) > smaller][:larger]
    quota = dict.fromkeys(readers, smaller) | dict.fromkeys(keeping, smaller + 1)
    others = [reader for reader in readers if quota[reader] == smaller]
    left = larger - len(keeping)
    for at, reader in enumerate(others):
        quota[reader] += -(-left * (at + 1) // len(others)) + (left * at // -len(others))
    return quota
