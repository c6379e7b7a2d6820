"""Which segments retention deletes, oldest first: retention.ms by the largest timestamp, retention.bytes, and segments
below the log start offset.

Only whole segments below the high watermark are deleted. They leave the log at once (renamed to `.deleted`) and the
disk file.delete.delay.ms later, because responses that are being sent may still refer to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.log.config import LogConfig
from ottla.log.files.segment import Segment


def expired(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    next_offset: int,
    high_watermark: int,
) -> int:
    """Return how many of the oldest segments may be deleted."""
    over_bytes = (
        sum(segment.size_bytes for segment in segments) - config.retention_bytes if config.retention_bytes >= 0 else -1
    )
    count = 0
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        end = next_offset if last else segments[number + 1].base_offset
        if end > high_watermark or (last and not segment.size_bytes):
            break
        over_bytes -= segment.size_bytes
        below_start = not last and end <= log_start_offset
        if not below_start and not (config.delete and (_too_old(segment, config, now_ms) or over_bytes >= 0)):
            break
        count += 1
    return count


def _too_old(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    # Without any timestamp (Kafka then uses the file's modification time) the time since the segment was opened is
    # used.
    newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms
    return config.retention_ms >= 0 and now_ms - newest > config.retention_ms
