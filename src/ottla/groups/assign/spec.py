"""What an assignor is asked, and what it answers.

An assignor is a function of a `GroupSpec`: the same question always gets the same answer, so nothing in it may depend
on the order of a set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

# Topic id → partitions. Topics without partitions have no entry.
Partitions = Mapping[bytes, frozenset[int]]
NO_PARTITIONS: Partitions = MappingProxyType({})


class MemberSpec(NamedTuple):
    """A member: the topics it reads (those that exist), what it was to own so far, and where it stands."""

    topics: frozenset[bytes]
    owned: Partitions = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None


class GroupSpec(NamedTuple):
    """All members, and how many partitions each of the topics has that any of them reads."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[bytes, int]

    @property
    def homogeneous(self) -> bool:
        """Whether all members read the same topics."""
        members = iter(self.members.values())
        first = next(members, None)
        return first is None or all(member.topics == first.topics for member in members)


# A member that gets nothing may be left out of the answer.
Assignor = Callable[[GroupSpec], dict[str, Partitions]]


def frozen(partitions: Mapping[bytes, set[int]]) -> Partitions:
    """The same without empty topics, in order of topic ids."""
    return {topic: frozenset(partitions[topic]) for topic in sorted(partitions) if partitions[topic]}


def size(partitions: Mapping[bytes, Collection[int]]) -> int:
    """How many partitions there are in all."""
    return sum(map(len, partitions.values()))
