"""Uniform: all members get equally many partitions, and as few partitions move as that allows. Balance goes before
stickiness.

If all members subscribe to the same topics, counts differ by one at most. If they do not, that may be impossible; then
no move of a single partition to another of its subscribers would bring the counts of the two members closer.
"""

from __future__ import annotations

from collections import deque

from ottla.groups.assign.spec import GroupSpec, Partitions, frozen, size

_Mutable = dict[bytes, set[int]]


def uniform(spec: GroupSpec) -> dict[str, Partitions]:
    if not spec.members:
        return {}
    return _alike(spec) if spec.homogeneous else _Mixed(spec).assign()


def _alike(spec: GroupSpec) -> dict[str, Partitions]:
    """Assign when all members subscribe to the same topics: each gets a quota, filled with its own partitions first."""
    topics = next(iter(spec.members.values())).topics
    kept = {member_id: _kept(spec, member_id) for member_id in sorted(spec.members)}
    counts = {member_id: size(owned) for member_id, owned in kept.items()}
    quota, extra = divmod(sum(spec.partitions[topic] for topic in topics), len(kept))
    # Members that have most already get the extra partitions, so that fewer move.
    ranked = sorted(kept, key=lambda member_id: (-counts[member_id], member_id))
    quotas = {member_id: quota + (rank < extra) for rank, member_id in enumerate(ranked)}
    free = deque(_free(spec, topics, kept))
    for member_id, owned in kept.items():
        for topic, partition in _last(owned, counts[member_id] - quotas[member_id]):
            owned[topic].remove(partition)
            counts[member_id] -= 1
            free.append((topic, partition))
    for member_id, owned in kept.items():
        for _ in range(quotas[member_id] - counts[member_id]):
            topic, partition = free.popleft()
            owned.setdefault(topic, set()).add(partition)
    return {member_id: frozen(owned) for member_id, owned in kept.items()}


def _kept(spec: GroupSpec, member_id: str) -> _Mutable:
    """Return the partitions that a member owns and may keep."""
    member = spec.members[member_id]
    return {
        topic: {partition for partition in partitions if partition < spec.partitions[topic]}
        for topic, partitions in member.owned.items()
        if topic in member.topics
    }


def _free(spec: GroupSpec, topics: frozenset[bytes], kept: dict[str, _Mutable]) -> list[tuple[bytes, int]]:
    """Return the partitions that no member keeps. A partition that two members claim (it cannot happen) stays with the
    first.
    """
    taken: set[tuple[bytes, int]] = set()
    for owned in kept.values():
        for topic, partitions in owned.items():
            partitions -= {each for each in partitions if (topic, each) in taken}
            taken.update((topic, each) for each in partitions)
    return [
        (topic, partition)
        for topic in sorted(topics)
        for partition in range(spec.partitions[topic])
        if (topic, partition) not in taken
    ]


def _last(owned: _Mutable, count: int) -> list[tuple[bytes, int]]:
    """Return the last `count` partitions; none if it is not positive."""
    if count <= 0:
        return []
    return [(topic, partition) for topic in sorted(owned) for partition in sorted(owned[topic])][-count:]


class _Mixed:
    """The assignment when members subscribe to different topics."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._readers = {
            topic: [member_id for member_id in sorted(spec.members) if topic in spec.members[member_id].topics]
            for topic in spec.partitions
        }
        # Topics with few subscribers for their partitions come first: they leave the least choice.
        self._topics = sorted(
            (topic for topic, readers in self._readers.items() if readers),
            key=lambda topic: (-spec.partitions[topic] / len(self._readers[topic]), len(self._readers[topic]), topic),
        )
        self._owned = {member_id: _kept(spec, member_id) for member_id in sorted(spec.members)}
        self._free = _free(spec, frozenset(self._topics), self._owned)
        self._counts = {member_id: size(owned) for member_id, owned in self._owned.items()}

    def assign(self) -> dict[str, Partitions]:
        rank = {topic: at for at, topic in enumerate(self._topics)}
        for topic, partition in sorted(self._free, key=lambda item: (rank[item[0]], item[1])):
            self._give(topic, partition, self._poorest(topic))
        moved = True
        while moved:
            moved = sum(self._balance(topic) for topic in self._topics) > 0
        return {member_id: frozen(owned) for member_id, owned in self._owned.items()}

    def _balance(self, topic: bytes) -> bool:
        """Move partitions of one topic from the owner with the most partitions to the subscriber with the fewest while
        that brings the two closer; return whether any moved. Each move lowers the sum of squares of all counts, so this
        ends.
        """
        moved = False
        while True:
            poorest = self._poorest(topic)
            owners = [member_id for member_id in self._readers[topic] if self._owned[member_id].get(topic)]
            richest = max(owners, key=lambda member_id: self._counts[member_id], default=poorest)
            if self._counts[richest] <= self._counts[poorest] + 1:
                return moved
            partition = max(self._owned[richest][topic])
            self._owned[richest][topic].remove(partition)
            self._counts[richest] -= 1
            self._give(topic, partition, poorest)
            moved = True

    def _poorest(self, topic: bytes) -> str:
        return min(self._readers[topic], key=lambda member_id: self._counts[member_id])

    def _give(self, topic: bytes, partition: int, member_id: str) -> None:
        self._owned[member_id].setdefault(topic, set()).add(partition)
        self._counts[member_id] += 1
