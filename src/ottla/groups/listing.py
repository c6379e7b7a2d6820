"""Listing of groups."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.group import Group, GroupKind
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model import limits
from ottla.model.java import in_table_order


class GroupListed(NamedTuple):
    """A group as ListGroups shows it."""

    group_id: str
    kind: GroupKind
    protocol_type: str
    state_name: str


@dataclass(frozen=True, slots=True)
class AllGroups:
    """Replies with all groups, in order of creation."""

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, list[Group]]:
        return Result(reply=list(view.state.groups.values()))


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """The groups in one of these states (names in lower case) and of one of these kinds; None: any."""

    states: frozenset[str] | None
    kinds: frozenset[GroupKind | None] | None

    def includes(self, group: Group) -> bool:
        return (self.states is None or group.state_name.lower() in self.states) and (
            self.kinds is None or group.kind in self.kinds
        )


def listed(groups: Sequence[Group], wanted: GroupFilter) -> Generator[None, None, list[GroupListed]]:
    """Return the groups that match, in Kafka's order; in steps, because there may be very many."""
    found: list[GroupListed] = []
    ordered = yield from in_table_order(groups, lambda group: group.group_id, limits.GROUPS_LISTED_PER_SLICE)
    for position, group in enumerate(ordered, 1):
        if wanted.includes(group):
            found.append(GroupListed(group.group_id, group.kind, group.protocol_type, group.state_name))
        if position % limits.GROUPS_LISTED_PER_SLICE == 0:
            yield
    return found
