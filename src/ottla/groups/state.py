"""GroupsState: all groups of one partition of `__consumer_offsets`; only `apply` and `note` change it."""

from __future__ import annotations

from ottla.groups.events.log import EventBudget, GroupEvents
from ottla.groups.group import Group
from ottla.groups.offsets.store import OffsetStore


class GroupsState:
    """Groups by id, their committed offsets, and what happened to them lately."""

    __slots__ = ("events", "groups", "offsets")

    def __init__(self, budget: EventBudget | None = None) -> None:
        """`budget` bounds the events of all machines of a node."""
        self.groups: dict[str, Group] = {}
        self.offsets = OffsetStore()
        self.events = GroupEvents(budget)
