"""The journal as consensus sees it: a log with epochs, its snapshots, and the stored election state.

Rules:
- Time stamps are set by the implementation: consensus itself runs on a clock that only measures intervals.
- Every operation is complete when the call returns, but only records below `flushed_offset` survive a loss of power.
  `write_election`, `seal_snapshot` and `install_snapshot` are durable before the node is given the next event.
- On a disk failure the implementation's exception is raised; the node's state is then as it was before the event, apart
  from records that were appended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ottla.model.ids import FIRST_LEADER_EPOCH, NO_ID, LeaderEpoch
from ottla.records.control import ControlType


class OffsetAndEpoch(NamedTuple):
    """The end of a log, or the content of a snapshot: everything below `offset`, the last record being of `epoch`."""

    offset: int
    epoch: LeaderEpoch

    def is_up_to_date_with(self, other: OffsetAndEpoch) -> bool:
        """Whether a candidate whose log ends here may be elected by a voter whose log ends at `other`."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


EMPTY_LOG = OffsetAndEpoch(0, FIRST_LEADER_EPOCH)


class ReplicaKey(NamedTuple):
    """A replica: a node, and the id of the directory its journal lies in (NO_ID if unknown)."""

    id: int
    directory: bytes = NO_ID


class ElectionState(NamedTuple):
    """The election state that a node must remember: its epoch, the leader of that epoch, the candidate it voted for."""

    epoch: LeaderEpoch = FIRST_LEADER_EPOCH
    leader_id: int = -1
    voted: ReplicaKey | None = None


class QuorumRecord(NamedTuple):
    """A control record about the voters, with its offset; -1 for one from a bootstrap file, which precedes the log."""

    offset: int
    type: ControlType
    value: bytes


class ReadableBytes(Protocol):
    """Bytes, or a range of a file that is to be sent to a socket."""

    def __len__(self) -> int: ...


class Journal(Protocol):
    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int: ...

    @property
    def last_epoch(self) -> LeaderEpoch:
        """The epoch of the last record, or of the snapshot that the log begins with; 0 if there is neither."""

    def epoch_end(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, int]:
        """Return (largest known epoch at or below `epoch`, its end offset); (-1, -1) if unknown."""

    def read(self, offset: int, max_bytes: int) -> ReadableBytes:
        """Return whole batches from `offset` on, at least one if there is one; empty at the end of the log."""

    def append_controls(self, controls: Sequence[tuple[ControlType, bytes]], epoch: LeaderEpoch) -> None:
        """Append one batch of control records, as the leader."""

    def append_fetched(self, records: bytes | memoryview) -> None:
        """Append batches that have their offsets and epochs, as a follower."""

    def truncate(self, offset: int) -> None:
        """Remove all records at or above `offset`."""

    def quorum_records(self) -> Sequence[QuorumRecord]:
        """Return all control records about the voters in the newest snapshot and in the log behind it, oldest first."""

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None: ...

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None: ...

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, max_bytes: int
    ) -> tuple[int, ReadableBytes] | None:
        """Return the size of a snapshot and a piece of it; None if the snapshot does not exist (any more)."""

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        """Write a piece of a snapshot that is fetched from the leader; position 0 begins anew."""

    def seal_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Complete a received snapshot and make it durable, before it replaces anything."""

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Begin the log anew, empty, behind the received snapshot, which was sealed in an earlier step.

        ValueError if the snapshot is damaged.
        """

    @property
    def in_doubt(self) -> bool:
        """Whether this node started with an empty disk and may have lost an earlier one: see `lost_disk`."""

    def end_doubt(self) -> None:
        """End the doubt. Durable when it returns: if the doubt of a majority came back, no leader could be elected."""

    def read_election(self) -> ElectionState: ...

    def write_election(self, election: ElectionState, voters: Sequence[int], kraft_version: int) -> None:
        """Store the election state; durable when it returns. `voters` is for the file format of kraft.version 0."""
