"""GroupsState: all groups of one partition of `__consumer_offsets`; only `apply` and `note` change it."""

from __future__ import annotations

from ottla.groups.group import Group
from ottla.groups.offsets.store import OffsetStore


class GroupsState:
    """Groups by id, and their committed offsets."""

    __slots__ = ("groups", "offsets")

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
