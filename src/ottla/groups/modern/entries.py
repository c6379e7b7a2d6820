"""GroupRecords: the records that consumer, share and streams groups write in the same way, in types of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ottla.machine.keyed import Entry
from ottla.wire.message import Data


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """The types of one kind of group's records: the keys of a member's three records, and the key and the value of the
    epoch that the targets were computed for.
    """

    member_key: Callable[..., Data]
    target_key: Callable[..., Data]
    current_key: Callable[..., Data]
    target_epoch_key: Callable[..., Data]
    target_epoch_value: Callable[..., Data]

    def target_epoch(self, group_id: str, epoch: int, assigned_ms: int) -> Entry:
        """Return the record of the targets' epoch, and of the time when they were computed."""
        value = self.target_epoch_value(assignment_epoch=epoch, assignment_timestamp=assigned_ms)
        return Entry(self.target_epoch_key(group_id=group_id), value)

    def member_tombstones(self, group_id: str, member_id: str) -> list[Entry]:
        """Return a member's tombstones in the order in which a coordinator expects to read them."""
        keys = (self.current_key, self.target_key, self.member_key)
        return [Entry(key(group_id=group_id, member_id=member_id), None) for key in keys]

    def tombstones(self, group_id: str, member_ids: Iterable[str]) -> list[Entry]:
        """Return the tombstones of all members and of their targets, in the order in which a coordinator expects to
        read them.
        """
        removed = [self.member_tombstones(group_id, member_id) for member_id in member_ids]
        return [
            *(current for current, _, _ in removed),
            *(target for _, target, _ in removed),
            Entry(self.target_epoch_key(group_id=group_id), None),
            *(member for _, _, member in removed),
        ]
