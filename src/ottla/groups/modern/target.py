"""The target assignment: when it is computed again, from what, and which of it is new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.groups.assign.spec import NO_PARTITIONS, Assignor, GroupSpec, MemberSpec, Partitions
from ottla.groups.view import GroupTopics


class TargetMember(NamedTuple):
    """A member as it will be, with the names of all topics it reads and the target it has so far."""

    topics: frozenset[str]
    target: Partitions = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None


class TargetChange(NamedTuple):
    """A member whose target is another one than before."""

    member_id: str
    target: Partitions


def may_assign(assigned_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the last assignment is long enough ago for the next one; a clock that was set back does not tell."""
    return assigned_ms == 0 or not assigned_ms <= now_ms < assigned_ms + interval_ms


def new_targets(readers: Mapping[str, TargetMember], topics: GroupTopics, assign: Assignor) -> dict[str, Partitions]:
    """What every member shall own; nobody is left out."""
    subscriptions = dict.fromkeys(reader.topics for reader in readers.values())
    names = sorted(frozenset().union(*subscriptions))
    known = {name: info for name in names if (info := topics.by_name(name)) is not None}
    ids = {wanted: frozenset(known[name].id for name in wanted if name in known) for wanted in subscriptions}
    members = {
        member_id: MemberSpec(ids[reader.topics], reader.target, reader.instance_id, reader.rack_id)
        for member_id, reader in readers.items()
    }
    partitions = {info.id: info.partitions for info in known.values()}
    found = assign(GroupSpec(members, partitions))
    return {member_id: found.get(member_id, NO_PARTITIONS) for member_id in readers}


def changes(old: Mapping[str, Partitions], new: Mapping[str, Partitions]) -> Iterable[TargetChange]:
    """Whose target has to be written down, in a stable order."""
    return [
        TargetChange(member_id, new[member_id]) for member_id in sorted(new) if old.get(member_id) != new[member_id]
    ]
