"""DescribeGroupEvents: what the coordinator remembers of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.events.event import GroupEvent
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode


class GroupHistory(NamedTuple):
    """A group's events, the oldest first, and since when its coordinator could remember any."""

    since_ms: int
    events: Sequence[GroupEvent]


@dataclass(frozen=True, slots=True)
class DescribeGroupEvents:
    """Replies with a GroupHistory; GROUP_ID_NOT_FOUND if the group does not exist and nothing is remembered of it.

    The reply waits for the records that were appended before, as every reply does, so it has only events of decisions
    that are committed.
    """

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, GroupHistory]:
        events = view.state.events.of(self.group_id, now_ms)
        if not events and self.group_id not in view.state.groups:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} not found.")
        loaded_ms = view.state.events.loaded_ms
        return Result(reply=GroupHistory(now_ms if loaded_ms is None else loaded_ms, events))
