"""DescribeGroup: describe a classic group."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.find import find_group
from ottla.groups.group import GroupKind
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    """Replies with the ClassicGroup; GROUP_ID_NOT_FOUND also if the group is of another kind."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ClassicGroup]:
        return Result(reply=find_group(view, self.group_id, ClassicGroup, GroupKind.CLASSIC))
