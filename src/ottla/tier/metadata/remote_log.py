"""RemoteLog: the segments of one partition in the remote tier, as the records of the metadata topic tell them.

Rules:
- `apply` is the only mutator. It refuses what contradicts the state with RemoteMetadataError and changes nothing then:
  the topic may have such records, of a broker that was no longer the leader. Whoever reads the topic passes over them.
- Only segments whose copy is finished are read. What was begun is known from its first record on, so that it can be
  deleted. A segment whose deletion is finished is forgotten.
- An offset is looked up with its leader epoch in the leader's history of epochs, never without one: so no record of a
  history that was lost is found (`lineage.py` says how far a segment may be read).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from operator import attrgetter

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.epoch_segments import EpochSegments
from ottla.tier.metadata.segment import (
    PartitionDeletion,
    RemoteLogEvent,
    RemoteSegmentMetadata,
    SegmentUpdate,
    TopicIdPartition,
)
from ottla.tier.metadata.states import (
    InvalidTransition,
    PartitionDeleteState,
    RemoteMetadataError,
    SegmentState,
    check_deletion,
    check_segment,
)

_START_OFFSET = attrgetter("start_offset")


class UnknownRemoteSegment(RemoteMetadataError):
    """A record is about a segment that no earlier record told of, or that is deleted."""


class RemoteLog:
    """Read it freely; change it only through `apply`."""

    __slots__ = ("_by_uuid", "deletion", "epochs", "finished_bytes", "partition")

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition = partition
        self.deletion: PartitionDeleteState | None = None  # how far the deletion of the whole partition is
        self.finished_bytes = 0  # of all segments whose copy is finished, whatever their lineage
        self.epochs: dict[LeaderEpoch, EpochSegments] = {}
        self._by_uuid: dict[bytes, RemoteSegmentMetadata] = {}

    def __len__(self) -> int:
        return len(self._by_uuid)

    def __contains__(self, uuid: bytes) -> bool:
        return uuid in self._by_uuid

    def __getitem__(self, uuid: bytes) -> RemoteSegmentMetadata:
        """Return a segment; UnknownRemoteSegment if there is none of this UUID."""
        try:
            return self._by_uuid[uuid]
        except KeyError:
            raise UnknownRemoteSegment(f"{self.partition} has no remote segment {uuid.hex()}") from None

    # ---------------------------------------------------------------- changes

    def apply(self, event: RemoteLogEvent) -> None:
        """Apply a record of the metadata topic."""
        if event.partition != self.partition:
            raise RemoteMetadataError(f"a record of {event.partition} is not one of {self.partition}")
        if isinstance(event, RemoteSegmentMetadata):
            self._add(event)
        elif isinstance(event, SegmentUpdate):
            self._update(event)
        else:
            self._delete(event)

    def _add(self, segment: RemoteSegmentMetadata) -> None:
        if segment.state is not SegmentState.COPY_SEGMENT_STARTED:
            raise InvalidTransition(f"the first record of {segment.id} has the state {segment.state.name}")
        before = self._by_uuid.get(segment.uuid)
        check_segment(None if before is None else before.state, segment.state)
        if before is not None:  # told again, perhaps with other epochs
            self._forget(before)
        self._keep(segment)
        for epoch, start in segment.leader_epochs:
            self._epoch(epoch).put_aside(start, segment.uuid)

    def _update(self, update: SegmentUpdate) -> None:
        before = self[update.uuid]
        if update.state is SegmentState.COPY_SEGMENT_STARTED:
            raise InvalidTransition(f"an update of {before.id} has the state {update.state.name}")
        check_segment(before.state, update.state)
        after = before.updated(update)
        if after.state is SegmentState.COPY_SEGMENT_FINISHED:
            self._keep(after)
            for epoch, start, end in after.epoch_ranges():
                self._epoch(epoch).finish(start, end, after.uuid)
        elif after.state is SegmentState.DELETE_SEGMENT_STARTED:
            self._keep(after)
            for epoch, start in after.leader_epochs:
                self._epoch(epoch).put_aside(start, after.uuid)
        else:
            self._forget(before)

    def _delete(self, deletion: PartitionDeletion) -> None:
        check_deletion(self.deletion, deletion.state)
        self.deletion = deletion.state

    def _keep(self, segment: RemoteSegmentMetadata) -> None:
        before = self._by_uuid.get(segment.uuid)
        self.finished_bytes += _finished_bytes(segment) - (_finished_bytes(before) if before else 0)
        self._by_uuid[segment.uuid] = segment

    def _forget(self, segment: RemoteSegmentMetadata) -> None:
        for epoch, start in segment.leader_epochs:
            self._epoch(epoch).remove(start, segment.uuid)
        self.finished_bytes -= _finished_bytes(segment)
        del self._by_uuid[segment.uuid]

    def _epoch(self, epoch: LeaderEpoch) -> EpochSegments:
        found = self.epochs.get(epoch)
        if found is None:
            found = self.epochs[epoch] = EpochSegments()
        return found

    @classmethod
    def restored(
        cls,
        partition: TopicIdPartition,
        deletion: PartitionDeleteState | None,
        segments: list[RemoteSegmentMetadata],
        epochs: dict[LeaderEpoch, EpochSegments],
    ) -> RemoteLog:
        """Return what a snapshot tells."""
        made = cls(partition)
        made.deletion = deletion
        made.epochs = epochs
        for segment in segments:
            made._keep(segment)
        return made

    # ---------------------------------------------------------------- queries

    def segment_at(self, epoch: LeaderEpoch, offset: int) -> RemoteSegmentMetadata | None:
        """Return the segment that is read for an offset of a leader epoch."""
        found = self.epochs.get(epoch)
        uuid = found.at(offset) if found else None
        return None if uuid is None else self._by_uuid[uuid]

    def highest_offset(self, epoch: LeaderEpoch) -> int | None:
        """Return the highest offset of a leader epoch that was ever copied; the copy may be deleted since."""
        found = self.epochs.get(epoch)
        return found.highest_offset if found else None

    def with_transactions(self, epoch: LeaderEpoch, offset: int) -> RemoteSegmentMetadata | None:
        """Return the segment of an offset or, of those that follow it without a gap within the leader epoch, the first
        that has an index of aborted transactions.
        """
        found = self.segment_at(epoch, offset)
        while found is not None and found.txn_index_empty:
            found = self.segment_at(epoch, found.end_offset + 1)
        return found

    def segments(self) -> Iterator[RemoteSegmentMetadata]:
        """Return all segments, in any state."""
        return iter(self._by_uuid.values())

    def segments_of(self, epoch: LeaderEpoch) -> Iterator[RemoteSegmentMetadata]:
        """Return all segments that have records of a leader epoch, in any state, by ascending start offsets."""
        found = self.epochs.get(epoch)
        if found is None:
            return iter(())
        read = (self._by_uuid[uuid] for uuid in found.referenced)
        if not found.unreferenced:
            return read
        others = sorted((self._by_uuid[uuid] for uuid in found.unreferenced), key=_START_OFFSET)
        return merge(read, others, key=_START_OFFSET)

    def unread(self) -> Iterator[RemoteSegmentMetadata]:
        """Return the segments that are read for no offset: unfinished copies and deletions, and replaced segments."""
        uuids = {uuid: None for epoch in self.epochs.values() for uuid in epoch.unreferenced}
        return (segment for segment in map(self._by_uuid.__getitem__, uuids) if not self._is_read(segment))

    def replaced(self) -> Iterator[RemoteSegmentMetadata]:
        """Return the finished copies all of whose offsets are read from others: they may be deleted."""
        return (segment for segment in self.unread() if segment.state is SegmentState.COPY_SEGMENT_FINISHED)

    def _is_read(self, segment: RemoteSegmentMetadata) -> bool:
        return any(self.epochs[epoch].is_read(start, segment.uuid) for epoch, start in segment.leader_epochs)


def _finished_bytes(segment: RemoteSegmentMetadata) -> int:
    return segment.size_bytes if segment.state is SegmentState.COPY_SEGMENT_FINISHED else 0
