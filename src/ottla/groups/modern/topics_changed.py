"""TopicsChanged: topics were created, deleted or got partitions, so groups that read them check them at the next
heartbeat.

The node submits `TopicsChanged` to every group machine. It only sets a flag per group; the next heartbeat of a member
does the work, so a group without members does none, and many changes in a row lead to one assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.modern.group import ModernGroup
from ottla.groups.part import GroupsPart
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result


class MetadataStale(NamedTuple):
    """A note: these groups read topics that changed."""

    group_ids: tuple[str, ...]


class MetadataSeen(NamedTuple):
    """A note: the group's hash of its topics was just recomputed."""

    group_id: str


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Submitted by the node: topics of these names were created, deleted or got more partitions."""

    names: frozenset[str]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        groups: Mapping[str, object] = view.state.groups
        found = tuple(
            group_id for group_id, group in groups.items() if isinstance(group, ModernGroup) and group.heeds(self.names)
        )
        return Result(notes=[MetadataStale(found)] if found else ())


def _stale(view: GroupsView, note: MetadataStale) -> None:
    for group_id in note.group_ids:
        group: object = view.state.groups.get(group_id)
        if isinstance(group, ModernGroup):
            group.mark_stale()


def _seen(view: GroupsView, note: MetadataSeen) -> None:
    group: object = view.state.groups.get(note.group_id)
    if isinstance(group, ModernGroup):
        group.metadata_stale = False


PART = GroupsPart({}, {MetadataStale: _stale, MetadataSeen: _seen})
