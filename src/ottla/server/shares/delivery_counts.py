"""How many records of each share group were delivered here, and what became of them, since the node started.

The counts outlive the live partitions of a group, which come and go with its sessions.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model.limits import SHARE_GROUPS_COUNTED_MAX
from ottla.shares.partition.terms import AcquiredRange, RecordState, Transition


class DeliveryCounts:
    """Of one group, in records."""

    __slots__ = ("acknowledged", "acquired", "archived", "redelivered")

    def __init__(self) -> None:
        self.acquired = 0  # each delivery counts
        self.redelivered = 0  # of these: not the first one
        self.acknowledged = 0
        self.archived = 0  # rejected, or delivered too often

    def were_acquired(self, ranges: Iterable[AcquiredRange]) -> None:
        for each in ranges:
            size = each.last - each.first + 1
            self.acquired += size
            self.redelivered += size * (each.count > 1)

    def was_stored(self, change: Transition) -> None:
        for batch in change.batches:
            if batch.delivery_state == RecordState.ACKNOWLEDGED:
                self.acknowledged += batch.last_offset - batch.first_offset + 1
        for dead in change.dead:
            self.archived += dead.last - dead.first + 1


class GroupDeliveries:
    """The counts by group; the group that was made known first is forgotten if there are too many."""

    def __init__(self) -> None:
        self.by_group: dict[str, DeliveryCounts] = {}

    def of(self, group_id: str) -> DeliveryCounts:
        counts = self.by_group.get(group_id)
        if counts is None:
            if len(self.by_group) >= SHARE_GROUPS_COUNTED_MAX:
                del self.by_group[next(iter(self.by_group))]
            counts = self.by_group[group_id] = DeliveryCounts()
        return counts
