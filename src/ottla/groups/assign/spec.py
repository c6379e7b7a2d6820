"""The input and the output of an assignor.

An assignor is a function of a `GroupSpec`: the same input always gives the same output, so nothing in it may depend on
the iteration order of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

# Topic id → partitions. Topics without partitions have no entry.
Partitions = Mapping[bytes, frozenset[int]]
NO_PARTITIONS: Partitions = MappingProxyType({})


class MemberSpec(NamedTuple):
    """A member: the topics it subscribes to (those that exist), its target so far, its instance id and rack."""

    topics: frozenset[bytes]
    owned: Partitions = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None


class GroupSpec(NamedTuple):
    """All members, and the number of partitions of each topic that any of them subscribes to."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]

    @property
    def homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        members = iter(self.members.values())
        first = next(members, None)
        return first is None or all(member.topics == first.topics for member in members)


# A member without partitions may be left out of the result.
Assignor = Callable[[GroupSpec], dict[str, Partitions]]


def frozen(partitions: Mapping[bytes, set[int]]) -> Partitions:
    """Return the partitions without empty topics, in order of topic ids."""
    return {topic: frozenset(partitions[topic]) for topic in sorted(partitions) if partitions[topic]}


def are_disjoint(targets: Iterable[Partitions]) -> bool:
    """Whether no partition is in two of the targets."""
    taken: dict[bytes, set[int]] = {}
    for target in targets:
        for topic_id, partitions in target.items():
            others = taken.setdefault(topic_id, set())
            if not others.isdisjoint(partitions):
                return False
            others |= partitions
    return True


def size(partitions: Mapping[bytes, Collection[int]]) -> int:
    """Return the total number of partitions."""
    return sum(map(len, partitions.values()))
