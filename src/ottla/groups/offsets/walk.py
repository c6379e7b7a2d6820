"""Walk: all offsets of all groups are looked at, some at a time; between two steps others change them.

A step ends when it has looked at so many, or has found so many that have to go. What is found is gone when the next
step begins (its tombstones were applied), so a `WalkPosition` tells how many offsets of a group were seen and stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import NamedTuple

from ottla.groups.offsets.entries import tombstone
from ottla.groups.offsets.store import CommittedOffset
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.model import limits
from ottla.model.ids import TopicPartition

_TOMBSTONE_WORK = 10  # as much as looking at so many
_GROUP_WORK = 5
_RECORD_OVERHEAD_BYTES = 20
_UTF8_BYTES_MAX = 4

IsGone = Callable[[TopicPartition, CommittedOffset | None], bool]  # None: a transaction that is under way commits it


class WalkPosition(NamedTuple):
    """The groups of a walk, at which of them it is, and how many of its offsets, pending ones too, stay so far."""

    groups: tuple[str, ...]
    at: int = 0
    behind: int = 0


class WalkStep:
    """One step: what goes, and where the next one begins (None: nowhere)."""

    def __init__(self, view: GroupsView, place: WalkPosition) -> None:
        self.gone: list[Entry] = []
        self._view = view
        self._place = place
        self._work = self._size_bytes = 0

    @property
    def next(self) -> WalkPosition | None:
        return self._place if self._place.at < len(self._place.groups) else None

    def take(self, rule_of: Callable[[str], IsGone | None], rest_of: Callable[[str], Iterable[Entry]]) -> None:
        """`rule_of` a group says which of its offsets go (None: the group is passed over); when all have been looked
        at and none of them stays, `rest_of` the group goes, too."""
        groups = self._place.groups
        while self._place.at < len(groups):
            if self._is_enough():
                return
            group_id = groups[self._place.at]
            rule = rule_of(group_id)
            if rule is not None:
                if not self._look(group_id, rule):
                    return
                if not self._place.behind:
                    self.gone.extend(rest_of(group_id))
            self._place = WalkPosition(groups, self._place.at + 1)
            self._work += _GROUP_WORK

    def _look(self, group_id: str, is_gone: IsGone) -> bool:
        """Whether the group has been looked at to its end."""
        offsets = self._view.state.offsets
        kept = offsets.of(group_id)
        found: set[TopicPartition] = set()
        behind = self._place.behind
        for partition in islice(chain(kept, offsets.pending(group_id)), behind, None):
            if self._is_enough():
                break
            self._work += 1
            if partition in found:  # committed, and by a transaction under way once more
                continue
            if is_gone(partition, kept.get(partition)):
                found.add(partition)
                self.gone.append(tombstone(group_id, partition))
                self._work += _TOMBSTONE_WORK
                self._size_bytes += tombstone_bytes(group_id, partition)
            else:
                behind += 1
        else:
            self._place = self._place._replace(behind=behind)
            return True
        self._place = self._place._replace(behind=behind)
        return False

    def _is_enough(self) -> bool:
        return self._work >= limits.OFFSETS_WALKED_AT_ONCE or self._size_bytes >= limits.JOURNAL_PORTION_BYTES


def tombstone_bytes(group_id: str, partition: TopicPartition) -> int:
    """What a tombstone takes at most."""
    return _RECORD_OVERHEAD_BYTES + _UTF8_BYTES_MAX * (len(group_id) + len(partition.topic))
