"""What a classic group looks like from outside."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.view import View
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    """Replies with the ClassicGroup; GROUP_ID_NOT_FOUND also if the group is of another kind."""

    group_id: str

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        group = view.state.groups.get(self.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")
        return Result(reply=group)
