"""What a voter in doubt about its own past knows (see `lost_disk` for the rules)."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.journal import OffsetAndEpoch


class EmptyLogSeen(NamedTuple):
    """A voter said that its log is empty: when, and in which epoch it was."""

    at_ms: int
    epoch: int


class Doubt:
    """What a voter in doubt knows; on disk is only that it is."""

    def __init__(self) -> None:
        self.empty: dict[int, EmptyLogSeen] = {}
        self.asked: dict[int, int] = {}  # voter → the number of the last question
        self.quarantine_until_ms = 0
        self.tell_ms: int | None = None  # when whoever runs this node hears (again) that it waits
        self._goal: OffsetAndEpoch | None = None  # what the leader of an epoch had committed

    def has_reached(self, high_watermark: int, epoch: int, offset: int) -> bool:
        """Whether `offset`, which is on disk, covers what the leader of `epoch` once said that it had committed."""
        if self._goal is None or self._goal.epoch != epoch:
            self._goal = OffsetAndEpoch(high_watermark, epoch)
        return offset >= self._goal.offset
