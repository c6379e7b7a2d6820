"""Find a group of a given kind by its id."""

from __future__ import annotations

from typing import TypeVar

from ottla.groups.group import Group, GroupKind
from ottla.groups.view import GroupsView
from ottla.model.errors import ApiError, ErrorCode

GroupT = TypeVar("GroupT", bound=Group)


def find_group(
    view: GroupsView, group_id: str, of: type[GroupT], kind: GroupKind, missing: str = "Group {} not found."
) -> GroupT:
    """Return the group; raises GROUP_ID_NOT_FOUND, also if the group is of another kind."""
    group = view.state.groups.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, missing.format(group_id))
    if not isinstance(group, of):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a {kind.value} group.")
    return group
