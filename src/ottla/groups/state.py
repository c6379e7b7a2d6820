"""GroupsState: all groups of one partition of `__consumer_offsets`; only `apply` and `note` of the machine change it."""

from __future__ import annotations

from ottla.groups.group import Group


class GroupsState:
    """Groups by id. A group that was never heard of has no entry; offsets may exist without a group."""

    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
