"""How records change a group: what is the same for consumer, share and streams groups.

Each kind of group has its own appliers, which say how the values of its records are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ottla.groups.group import Group
from ottla.groups.modern.group import MemberT, ModernGroup, TargetT
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry

GroupT = TypeVar("GroupT", bound=Group)
ValueT = TypeVar("ValueT")


def apply_to_group(
    view: GroupsView,
    entry: Entry,
    kind: type[GroupT],
    ends: type,
    appliers: Mapping[type, Callable[[GroupT, Entry], None]],
) -> None:
    """Apply an entry to its group. Any entry creates a missing group, because compaction may have removed the entries
    before it. A tombstone with a key of type `ends` ends the group; tombstones of a group that is gone or of another
    kind now are ignored.
    """
    groups, group_id = view.state.groups, entry.key.group_id
    found = groups.get(group_id)
    group = found if isinstance(found, kind) else None
    if entry.value is None and group is None:
        return
    if entry.value is None and isinstance(entry.key, ends):
        del groups[group_id]
        return
    if group is None:
        group = groups[group_id] = kind(group_id)  # type: ignore[call-arg]  # every kind of group has this constructor
    appliers[type(entry.key)](group, entry)


def apply_target_epoch(group: ModernGroup[MemberT, TargetT], entry: Entry) -> None:
    """Set the epoch of the targets, and the time when they were computed."""
    if entry.value is not None:
        group.assignment_epoch = entry.value.assignment_epoch
        group.assigned_ms = entry.value.assignment_timestamp
    else:
        group.assignment_epoch, group.assigned_ms = 1, 0


def apply_member(
    group: ModernGroup[MemberT, TargetT],
    entry: Entry,
    new: Callable[[str], MemberT],
    described: Callable[[MemberT, ValueT], MemberT],
) -> None:
    """Set a member's own description: `described` returns the member with that of the value. A tombstone removes the
    member.
    """
    member_id = entry.key.member_id
    if entry.value is None:
        group.drop_member(member_id)
    else:
        group.put_member(described(group.members.get(member_id) or new(member_id), entry.value))


def apply_target(group: ModernGroup[MemberT, TargetT], entry: Entry, read: Callable[[ValueT], TargetT]) -> None:
    """Set or remove the target of a member."""
    if entry.value is None:
        group.targets.pop(entry.key.member_id, None)
    else:
        group.targets[entry.key.member_id] = read(entry.value)


def apply_current(
    group: ModernGroup[MemberT, TargetT],
    entry: Entry,
    new: Callable[[str], MemberT],
    reconciled: Callable[[MemberT, ValueT | None], MemberT],
) -> None:
    """Set the state of a member's reconciliation: `reconciled` returns the member with that of the value, or, without a
    value, with none. The tombstone of a member that is gone is ignored.
    """
    member_id = entry.key.member_id
    member = group.members.get(member_id)
    if member is None:
        if entry.value is None:
            return
        member = new(member_id)
    group.put_member(reconciled(member, entry.value))
