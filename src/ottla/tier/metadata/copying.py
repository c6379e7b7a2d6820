"""Which segments of the local log are copied to the remote tier next.

Rules, as in Kafka:
- Only closed segments are copied, all of whose offsets are below the last stable offset: they are committed, and no
  transaction that has records in them is open.
- They are copied in the order of their offsets, from the one that has the first offset above what is copied and above
  the log start offset. After a change of the leader that segment may have offsets that another copy has, too: it is
  copied as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


class LocalSegment(NamedTuple):
    """A segment of the local log, as far as tiering looks at it. It ends where the next one begins. `newest_ms` is its
    newest timestamp, or the time when it was created if it has none: it is never -1 (`newest_of`).
    """

    base_offset: int
    size_bytes: int
    newest_ms: int


def newest_of(max_timestamp_ms: int, created_ms: int) -> int:
    """Return the time that retention counts from: of the newest record, or without any timestamps (-1) that when the
    segment was made.
    """
    return max_timestamp_ms if max_timestamp_ms >= 0 else created_ms


class CopyCandidate(NamedTuple):
    """A segment that may be copied, and its last offset."""

    segment: LocalSegment
    end_offset: int


def segments_to_copy(
    segments: Sequence[LocalSegment], *, copied_through: int, log_start_offset: int, last_stable_offset: int
) -> list[CopyCandidate]:
    """Return the segments to copy, oldest first; the last one of the log's `segments` is the active one."""
    first = max(copied_through + 1, log_start_offset)
    return [
        CopyCandidate(segment, next.base_offset - 1)
        for segment, next in pairwise(segments)
        if first < next.base_offset <= last_stable_offset
    ]


def local_only_bytes(segments: Sequence[LocalSegment], *, copied_through: int) -> int:
    """Return the bytes of the segments no record of which is in the remote tier, the active one included."""
    return sum(segment.size_bytes for segment in segments if segment.base_offset > copied_through)
