"""Which remote segments are deleted: retention over both tiers, DeleteRecords, lost histories, and what is left over.

Rules, as in Kafka where nothing else is said:
- By time and by size the oldest segments of the leader's history go, up to the first one that has to stay, or that is
  being copied. The size is that of both tiers; segments that are in the local log, too, count once.
- A segment without timestamps is as old as its record says that its state is.
- A segment all of whose records are below the log start offset goes, and its size counts as freed (in Kafka it counts
  as still there, so that more goes than has to).
- A segment all of whose leader epochs are below the leader's first one is of a history that is over, and goes.
- Deletions that were begun are finished first, wherever they are. (Kafka passes over those behind the first segment
  that stays.)
- Segments all of whose offsets are read from others go, and do not count for the size. (In Kafka they count, and stay
  until they are too old.)
- The log start offset is raised to what is left before anything is deleted: with that the next leader goes on with the
  deletion, and consumers are not sent to a segment that is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import NamedTuple

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.copying import newest_of
from ottla.tier.metadata.lineage import Lineage
from ottla.tier.metadata.local_retention import UNLIMITED, TierLimits
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import RemoteSegmentMetadata
from ottla.tier.metadata.states import SegmentState


class ExpiryReason(Enum):
    """Why a segment is deleted, for the log."""

    DELETION_UNFINISHED = "its deletion was begun before"
    COPY_UNFINISHED = "its copy was never finished"
    REPLACED = "other copies have all of its offsets"
    LOST_LINEAGE = "its leader epochs are older than the partition's history"
    BELOW_LOG_START = "it is below the log start offset"
    RETENTION_MS = "it is past retention.ms"
    RETENTION_BYTES = "the partition is larger than retention.bytes"


class ExpiredSegment(NamedTuple):
    segment: RemoteSegmentMetadata
    reason: ExpiryReason


class RemoteExpiry(NamedTuple):
    """What to delete, in this order, and the log start offset to set before; None leaves it."""

    segments: list[ExpiredSegment]
    log_start_offset: int | None


def expired_remote(
    remote: RemoteLog,
    lineage: Lineage,
    limits: TierLimits,
    *,
    now_ms: int,
    log_start_offset: int,
    local_only_bytes: int,
    being_copied: Collection[bytes] = (),
) -> RemoteExpiry:
    """Return what is past retention; `being_copied` are the UUIDs of the leader's own copies that are not finished."""
    chosen = {expired.segment.uuid: expired for expired in _left_over(remote, lineage, being_copied)}
    over_bytes = _over_bytes(remote, lineage, limits, local_only_bytes)
    oldest_ms = now_ms - limits.retention_ms if limits.retention_ms != UNLIMITED else -1
    new_start = None
    for segment in _of_history(remote, lineage):
        if segment.uuid in chosen:
            continue
        if segment.uuid in being_copied:
            break
        if segment.state is not SegmentState.COPY_SEGMENT_FINISHED:
            continue
        if segment.last_epoch <= lineage.entries[0][0] and segment.end_offset < log_start_offset:
            reason = ExpiryReason.BELOW_LOG_START
        elif not lineage.has(segment):
            continue
        elif oldest_ms >= 0 and _newest_ms(segment) <= oldest_ms:
            reason = ExpiryReason.RETENTION_MS
        elif 0 < over_bytes >= segment.size_bytes:
            reason = ExpiryReason.RETENTION_BYTES
        else:
            break
        if reason is not ExpiryReason.BELOW_LOG_START:
            new_start = max(new_start or 0, segment.end_offset + 1)
        if lineage.has(segment):
            over_bytes -= segment.size_bytes
        chosen[segment.uuid] = ExpiredSegment(segment, reason)
    return RemoteExpiry(list(chosen.values()), new_start)


def abandoned_copies(
    remote: RemoteLog, *, now_ms: int, grace_ms: int, being_copied: Collection[bytes] = ()
) -> list[ExpiredSegment]:
    """Return the copies that were begun `grace_ms` ago or earlier and that the leader is not making.

    A broker stopped in the middle of them, or is the leader no longer. Kafka keeps them until they are past retention.
    """
    return [
        ExpiredSegment(segment, ExpiryReason.COPY_UNFINISHED)
        for segment in remote.unread()
        if segment.state is SegmentState.COPY_SEGMENT_STARTED
        and segment.uuid not in being_copied
        and segment.event_timestamp_ms <= now_ms - grace_ms
    ]


def size_within(remote: RemoteLog, lineage: Lineage) -> int:
    """Return the bytes of the leader's history in the remote tier: of finished copies that are read for some offset."""
    replaced = {segment.uuid for segment in remote.replaced()}
    return sum(
        segment.size_bytes
        for segment in _of_history(remote, lineage)
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and segment.uuid not in replaced and lineage.has(segment)
    )


def _newest_ms(segment: RemoteSegmentMetadata) -> int:
    return newest_of(segment.max_timestamp_ms, segment.event_timestamp_ms)


def _left_over(remote: RemoteLog, lineage: Lineage, being_copied: Collection[bytes]) -> Iterator[ExpiredSegment]:
    for segment in remote.unread():
        if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            yield ExpiredSegment(segment, ExpiryReason.DELETION_UNFINISHED)
        elif segment.state is SegmentState.COPY_SEGMENT_FINISHED:
            yield ExpiredSegment(segment, ExpiryReason.REPLACED)
    first = lineage.first_epoch
    if first is None:
        return
    for epoch in sorted(epoch for epoch in remote.epochs if epoch < first):
        for segment in remote.segments_of(epoch):
            is_chosen = segment.state is SegmentState.DELETE_SEGMENT_STARTED or segment.uuid in being_copied
            if segment.last_epoch == epoch and not is_chosen:
                yield ExpiredSegment(segment, ExpiryReason.LOST_LINEAGE)


def _of_history(remote: RemoteLog, lineage: Lineage) -> Iterator[RemoteSegmentMetadata]:
    """Return each segment that has an epoch of the leader's history once, in its order."""
    earlier: set[LeaderEpoch] = set()
    for epoch, _ in lineage.entries:
        for segment in remote.segments_of(epoch):
            if not any(known in earlier for known, _ in segment.leader_epochs):
                yield segment
        earlier.add(epoch)


def _over_bytes(remote: RemoteLog, lineage: Lineage, limits: TierLimits, local_only_bytes: int) -> int:
    if limits.retention_bytes == UNLIMITED:
        return 0
    room = limits.retention_bytes - local_only_bytes
    # The sum of all finished copies is known; only when that is too much is it looked at which of them count.
    return 0 if remote.finished_bytes <= room else max(0, size_within(remote, lineage) - room)
