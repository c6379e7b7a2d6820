"""Finds the group that an entry changes; each kind of group has its own appliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.groups.modern.group import ModernGroup
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry


def apply_to_group(
    view: GroupsView, entry: Entry, kind: type[Any], ends: type, appliers: Mapping[type, Callable[[Any, Entry], None]]
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
        group = groups[group_id] = kind(group_id)
    appliers[type(entry.key)](group, entry)


def apply_target_epoch(group: ModernGroup[Any, Any], entry: Entry) -> None:
    """Set the epoch of the targets, and the time when they were computed."""
    if entry.value is not None:
        group.assignment_epoch = entry.value.assignment_epoch
        group.assigned_ms = entry.value.assignment_timestamp
    else:
        group.assignment_epoch, group.assigned_ms = 1, 0
