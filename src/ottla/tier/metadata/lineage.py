"""Lineage: the leader's history of epochs, with which remote segments are judged.

Rules:
- Two logs have the same records at an offset exactly if they have the same leader epoch there. So a remote segment may
  be read as far as its epochs are those of the leader. After an unclean election a segment may agree with the leader up
  to some offset and have lost records above it.
- Epochs without records are left out, but for the last one: no segment has records of them.
- The history begins at the log start offset, over both tiers. The first epoch's start was moved up to it, so it may be
  above the start of that epoch in a segment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.segment import EpochStarts, RemoteSegmentMetadata


class Lineage:
    """A frozen copy of the history, made from `(epoch, start offset)` in ascending order."""

    __slots__ = ("_positions", "entries", "log_end_offset", "starts")

    def __init__(self, entries: Iterable[tuple[LeaderEpoch, int]], log_end_offset: int) -> None:
        self.entries = with_records(tuple(entries))
        self.log_end_offset = log_end_offset  # the offset of the next record
        self.starts = [start for _, start in self.entries]
        self._positions = {epoch: position for position, (epoch, _) in enumerate(self.entries)}

    @property
    def first_epoch(self) -> LeaderEpoch | None:
        return self.entries[0][0] if self.entries else None

    def epochs_from(self, offset: int) -> Iterator[tuple[LeaderEpoch, int]]:
        """Return the epoch of an offset and those after it, each with its first offset from there on."""
        at = max(bisect_right(self.starts, offset) - 1, 0)
        return ((epoch, max(start, offset)) for epoch, start in self.entries[at:])

    def epoch_at(self, offset: int) -> LeaderEpoch | None:
        """Return the leader epoch of an offset; None below the log start offset."""
        at = bisect_right(self.starts, offset) - 1
        return self.entries[at][0] if at >= 0 else None

    def end_offset(self, epoch: LeaderEpoch) -> int | None:
        """Return the offset after the last one of an epoch; None if the history does not have the epoch."""
        position = self._positions.get(epoch)
        return None if position is None else self._end(position)

    def within(self, start_offset: int, end_offset: int) -> EpochStarts:
        """Return the epochs of the offsets from `start_offset` to `end_offset`, inclusive, and where each begins."""
        if self.epoch_at(start_offset) is None:
            return ()
        return tuple((epoch, start) for epoch, start in self.epochs_from(start_offset) if start <= end_offset)

    def has(self, segment: RemoteSegmentMetadata) -> bool:
        """Return whether all of a segment's records are the leader's, as far as its history reaches back: Kafka's
        rule for segments whose time and size count for retention.
        """
        if not self.entries or segment.end_offset >= self.log_end_offset:
            return False
        epochs = segment.leader_epochs if len(segment.leader_epochs) == 1 else with_records(segment.leader_epochs)
        first_known, last_known = self.entries[0][0], self.entries[-1][0]
        if not first_known <= epochs[-1][0] <= last_known:
            return False
        known = [(epoch, start) for epoch, start in epochs if epoch >= first_known]
        position = self._positions.get(known[0][0])
        if position is None or (position > 0 and known[0][1] < self.starts[position]):
            return False
        # From there on both histories have to be the same, up to where the segment ends.
        last = position + len(known) - 1
        return self.entries[position + 1 : last + 1] == tuple(known[1:]) and segment.end_offset < self._end(last)

    def readable_through(self, segment: RemoteSegmentMetadata, offset: int) -> int | None:
        """Return the last offset up to which a segment has the leader's records from `offset` on; None if not even that
        one is.
        """
        through = None
        for epoch, start, end in segment.epoch_ranges():
            if end < offset or end < start:
                continue
            known_end = self.end_offset(epoch)
            if known_end is None or start > offset or known_end <= offset or self.epoch_at(offset) != epoch:
                break
            through = min(end, known_end - 1)
            if through < end:
                break
            offset = end + 1
        return through

    def _end(self, position: int) -> int:
        return self.starts[position + 1] if position + 1 < len(self.starts) else self.log_end_offset


def with_records(entries: EpochStarts) -> EpochStarts:
    """Leave out the epochs that end where they begin; the last one is kept."""
    if len(entries) < 2:
        return entries
    kept = [entry for entry, after in pairwise(entries) if entry[1] != after[1]]
    return (*kept, entries[-1])
