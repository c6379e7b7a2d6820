"""ShareGroupDescribe: describe a group and its members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.share.group import find
from ottla.groups.share.member import ShareMember
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result


class ShareGroupDescription(NamedTuple):
    """A copy of the group's state: the group itself may change while the reply waits for its commit."""

    state_name: str
    epoch: int
    assignment_epoch: int
    members: tuple[ShareMember, ...]


@dataclass(frozen=True, slots=True)
class DescribeShareGroup:
    """Replies with a ShareGroupDescription."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ShareGroupDescription]:
        group = find(view, self.group_id)
        return Result(
            reply=ShareGroupDescription(
                group.state_name, group.epoch, group.assignment_epoch, tuple(group.members.values())
            )
        )
