"""The target assignment: when it is computed again, how, and which members' targets changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.groups.assign.spec import NO_PARTITIONS, Assignor, GroupSpec, MemberSpec, Partitions
from ottla.groups.view import GroupTopics


class TargetMember(NamedTuple):
    """A member after the command, with the names of all topics it reads and its target so far."""

    topics: frozenset[str]
    target: Partitions = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None


class TargetChange(NamedTuple):
    """A member whose target changed."""

    member_id: str
    target: Partitions


def may_assign(assigned_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the assignment interval has passed; a last time in the future (the clock was set back) is ignored."""
    return assigned_ms == 0 or not assigned_ms <= now_ms < assigned_ms + interval_ms


def new_targets(readers: Mapping[str, TargetMember], topics: GroupTopics, assign: Assignor) -> dict[str, Partitions]:
    """Return the targets of all members; those without partitions are included."""
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
    """Return the members whose targets must be written, in a stable order."""
    return [
        TargetChange(member_id, new[member_id]) for member_id in sorted(new) if old.get(member_id) != new[member_id]
    ]
