"""Which segments of a tiered topic's local log may go: what is copied and past local.retention.ms or .bytes.

Rules, as in Kafka:
- The oldest segments go first, and never one with offsets at or above the high watermark.
- A segment goes only when all of it is in the remote tier, or below the log start offset.
- A local retention of -2 is that of the topic (retention.ms, retention.bytes); -1 is no limit.
- With remote.copy.disable=true nothing is copied any more: the topic's own retention counts for the local log, and what
  goes need not be in the remote tier.
- A segment without timestamps is as old as the time since it was created. (Kafka uses the file's modification time.)
- The active segment is closed when it is past the retention, so that it can be copied and go later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.tier.metadata.copying import LocalSegment

AS_TOPIC = -2
UNLIMITED = -1


class TierLimits(NamedTuple):
    """How long and how much is kept: the settings of one topic."""

    retention_ms: int
    retention_bytes: int
    local_retention_ms: int = AS_TOPIC
    local_retention_bytes: int = AS_TOPIC
    copies: bool = True  # remote.copy.disable=false
    deletes: bool = True  # cleanup.policy has delete

    @property
    def local_ms(self) -> int:
        """The time that counts for the local log."""
        own = self.copies and self.local_retention_ms != AS_TOPIC
        return self.local_retention_ms if own else self.retention_ms

    @property
    def local_bytes(self) -> int:
        """The size that counts for the local log."""
        own = self.copies and self.local_retention_bytes != AS_TOPIC
        return self.local_retention_bytes if own else self.retention_bytes


class LocalOffsets(NamedTuple):
    """Where the local log and its copies begin and end."""

    log_start_offset: int  # over both tiers
    local_start_offset: int
    copied_through: int  # the last offset that is in the remote tier
    high_watermark: int
    log_end_offset: int


class LocalExpiry(NamedTuple):
    """How many of the oldest segments may go, and whether to close the active one."""

    removable: int
    close_active: bool


def expired_local(
    segments: Sequence[LocalSegment], limits: TierLimits, offsets: LocalOffsets, *, now_ms: int
) -> LocalExpiry:
    """Return what may go of `segments`, the last of which is the active one."""
    local_ms, local_bytes = limits.local_ms, limits.local_bytes
    total = sum(segment.size_bytes for segment in segments)
    over_bytes = total - local_bytes if limits.deletes and local_bytes != UNLIMITED else UNLIMITED
    oldest_ms = now_ms - local_ms if limits.deletes and local_ms != UNLIMITED else None
    for count, segment in enumerate(segments):
        is_active = count == len(segments) - 1
        end = offsets.log_end_offset if is_active else segments[count + 1].base_offset
        over_bytes -= segment.size_bytes
        is_below_start = not is_active and end <= max(offsets.local_start_offset, offsets.log_start_offset)
        is_old = oldest_ms is not None and segment.newest_ms < oldest_ms
        if end > offsets.high_watermark or not (is_below_start or is_old or over_bytes >= 0):
            return LocalExpiry(count, False)
        if is_active:
            # Only a closed segment can be copied and go.
            return LocalExpiry(count, segment.size_bytes > 0)
        if limits.copies and end - 1 > offsets.copied_through and end > offsets.log_start_offset:
            return LocalExpiry(count, False)
    return LocalExpiry(len(segments), False)
