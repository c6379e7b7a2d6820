"""Where records are in the remote tier: for reads, for the next copy, and for ListOffsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch
from ottla.tier.metadata.lineage import Lineage
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import RemoteSegmentMetadata


class ReadableSegment(NamedTuple):
    """A segment, and the last offset up to which its records are those of the leader."""

    segment: RemoteSegmentMetadata
    last_offset: int


class CopiedOffset(NamedTuple):
    """The highest offset in the remote tier and its leader epoch; -1 for both if nothing was copied."""

    offset: int = -1
    epoch: LeaderEpoch = NO_LEADER_EPOCH


def segment_for(remote: RemoteLog, lineage: Lineage, offset: int) -> ReadableSegment | None:
    """Return the segment that has an offset of the leader's history; records of a lost history are never found."""
    epoch = lineage.epoch_at(offset)
    found = None if epoch is None else remote.segment_at(epoch, offset)
    through = None if found is None else lineage.readable_through(found, offset)
    return None if found is None or through is None else ReadableSegment(found, through)


def segment_with_transactions(remote: RemoteLog, lineage: Lineage, offset: int) -> RemoteSegmentMetadata | None:
    """Return the first segment from an offset on that has an index of aborted transactions."""
    for epoch, start in lineage.epochs_from(offset):
        found = remote.with_transactions(epoch, start)
        if found is not None:
            return found
    return None


def segments_since(
    remote: RemoteLog, lineage: Lineage, timestamp_ms: int, from_offset: int
) -> Iterator[ReadableSegment]:
    """Return the segments that may have a record of this time or later, from an offset on and up to the first gap.

    The first of them need not have one: its newest records may be below the offset, or be lost records.
    """
    found = segment_for(remote, lineage, from_offset)
    while found is not None:
        if found.segment.max_timestamp_ms >= timestamp_ms:
            yield found
        found = segment_for(remote, lineage, found.last_offset + 1)


def highest_copied(remote: RemoteLog, lineage: Lineage) -> CopiedOffset:
    """Return the highest offset of the leader's history that was copied: what ListOffsets answers for latest-tiered.

    As in Kafka this does not ask whether all offsets below it are still there; `covered_through` does.
    """
    for epoch, _ in reversed(lineage.entries):
        highest = remote.highest_offset(epoch)
        end = lineage.end_offset(epoch)
        if highest is not None and end is not None:
            return CopiedOffset(min(highest, end - 1), epoch)
    return CopiedOffset()


def covered_through(remote: RemoteLog, lineage: Lineage, from_offset: int) -> int:
    """Return the last offset up to which every offset from `from_offset` on can be read from the remote tier;
    `from_offset` - 1 if not even that one can.

    Local segments may go, and the next copy begins, by this offset. With that a copy that was lost, or whose records
    are not the leader's, is made again as long as the local log has its records.
    """
    found = segment_for(remote, lineage, from_offset)
    while found is not None:
        from_offset = found.last_offset + 1
        found = segment_for(remote, lineage, from_offset)
    return from_offset - 1


def earliest_offset(remote: RemoteLog, lineage: Lineage) -> int | None:
    """Return the start of the oldest segment with records of the leader's history; None if there is none.

    A new leader begins its log there: the log start offset of the one before it may not have come to it.
    """
    for epoch, _ in lineage.entries:
        for segment in remote.segments_of(epoch):
            return segment.start_offset
    return None
