"""The journal as consensus sees it: a log with epochs, its snapshots, and the memory of elections.

Rules:
- Time stamps are the implementation's business: consensus itself runs on a clock that only measures intervals.
- Everything here is done when the call returns, but only what lies below `flushed_offset` survives a loss of power.
  `write_election`, `seal_snapshot` and `install_snapshot` are durable before the node hears of anything else.
- A failing disk raises whatever the implementation raises; the node's state is then as it was before the event, apart
  from what was appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.model.ids import NO_ID
from ottla.records.control import ControlType


class OffsetAndEpoch(NamedTuple):
    """Where a log ends, or what a snapshot holds: everything below `offset`, the last record being of `epoch`."""

    offset: int
    epoch: int

    def is_up_to_date_with(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends here has at least what decides an election against one that ends there."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class ReplicaKey(NamedTuple):
    """A replica: a node, and the disk its journal lies on (NO_ID where that is not known)."""

    id: int
    directory: bytes = NO_ID


class ElectionState(NamedTuple):
    """What a node must remember of elections: its epoch, who leads it, whom it voted for."""

    epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None


class QuorumRecord(NamedTuple):
    """A control record about the voters, where it lies. -1: before everything (from a bootstrap file)."""

    offset: int
    type: ControlType
    value: bytes


class ReadableBytes(Protocol):
    """Bytes, or a range of a file that is on its way to a socket."""

    def __len__(self) -> int: ...


class Journal(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """Of the last record, or of the snapshot that the log begins with; 0 if there is neither."""

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(largest known epoch at or below `epoch`, where it ends); (-1, -1) if the log cannot tell."""

    def read(self, offset: int, max_bytes: int) -> ReadableBytes:
        """Whole batches from `offset` on, at least one if there is one; empty at the end of the log."""

    def append_controls(self, controls: Sequence[tuple[ControlType, bytes]], epoch: int) -> None:
        """As the leader: one batch of control records."""

    def append_fetched(self, records: bytes | memoryview) -> None:
        """As a follower: batches with their offsets and epochs."""

    def truncate(self, offset: int) -> None:
        """Cut everything at or above `offset`."""

    def quorum_records(self) -> Sequence[QuorumRecord]:
        """All that the newest snapshot and the log behind it say about the voters, oldest first."""

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None: ...

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None: ...

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, max_bytes: int
    ) -> tuple[int, ReadableBytes] | None:
        """The size of a snapshot and a piece of it; None if it is not there (any more)."""

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        """A piece of a snapshot of the leader; position 0 begins anew."""

    def seal_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """The received snapshot is complete: what it holds must last before it takes the place of anything."""

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """The log begins, empty, behind the received snapshot, which was sealed in an earlier step. ValueError if it is
        damaged."""

    @property
    def in_doubt(self) -> bool:
        """The disk was empty when this node came, and nobody vouched for that: see `lost_disk`."""

    def end_doubt(self) -> None:
        """It is not any more. Durable when it returns: a majority whose doubt comes back would elect nobody."""

    def read_election(self) -> ElectionState: ...

    def write_election(self, election: ElectionState, voters: Sequence[int], kraft_version: int) -> None:
        """Durable when it returns. `voters` is for the file of kraft.version 0."""
