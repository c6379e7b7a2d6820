"""Which groups there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.group import GroupKind
from ottla.groups.view import View
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.java import table_order


class GroupListed(NamedTuple):
    """A group as lists show it."""

    group_id: str
    kind: GroupKind
    protocol_type: str
    state_name: str


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Replies with the groups in one of these states (names in lower case) and of one of these kinds; None: any."""

    states: frozenset[str] | None
    kinds: frozenset[GroupKind | None] | None

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        return Result(
            reply=[
                GroupListed(group_id, group.kind, group.protocol_type, group.state_name)
                for group_id, group in table_order(view.state.groups.items(), lambda entry: entry[0])
                if (self.states is None or group.state_name.lower() in self.states)
                and (self.kinds is None or group.kind in self.kinds)
            ]
        )
