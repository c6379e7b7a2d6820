"""Walk: look at all offsets of all groups in steps; other commands may change them in between.

A step ends when it has looked at a number of offsets, or has found a number of offsets to remove. The offsets found are
gone when the next step begins (their tombstones were applied), so a `WalkPosition` counts the offsets of a group that
were seen and kept.
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

_TOMBSTONE_WORK = 10  # writing a tombstone costs as much as looking at so many offsets
_GROUP_WORK = 5
_RECORD_OVERHEAD_BYTES = 20
_UTF8_BYTES_MAX = 4

IsGone = Callable[[TopicPartition, CommittedOffset | None], bool]  # None: only a transaction in progress commits it


class WalkPosition(NamedTuple):
    """The groups of a walk, the index of the current one, and how many of its offsets, including pending ones, were
    kept so far.
    """

    groups: tuple[str, ...]
    at: int = 0
    behind: int = 0


class WalkStep:
    """One step of a walk: the tombstones of the offsets to remove, and the position of the next step (None: the
    end).
    """

    def __init__(self, view: GroupsView, place: WalkPosition) -> None:
        self.gone: list[Entry] = []
        self._view = view
        self._place = place
        self._work = self._size_bytes = 0

    @property
    def next(self) -> WalkPosition | None:
        return self._place if self._place.at < len(self._place.groups) else None

    def take(self, rule_of: Callable[[str], IsGone | None], rest_of: Callable[[str], Iterable[Entry]]) -> None:
        """Take the step. `rule_of` a group says which of its offsets to remove (None: skip the group); if all its
        offsets were seen and none is kept, the entries of `rest_of` the group are added.
        """
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
        """Look at the offsets of one group; return whether all were seen."""
        offsets = self._view.state.offsets
        kept = offsets.of(group_id)
        found: set[TopicPartition] = set()
        behind = self._place.behind
        for partition in islice(chain(kept, offsets.pending(group_id)), behind, None):
            if self._is_enough():
                break
            self._work += 1
            if partition in found:  # committed, and pending in a transaction as well
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
    """Return the largest size of a tombstone."""
    return _RECORD_OVERHEAD_BYTES + _UTF8_BYTES_MAX * (len(group_id) + len(partition.topic))
