"""Finding records by time: the first at or after a moment, and the one with the largest timestamp.

Exact inside compressed batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.log.scan import scan
from ottla.log.segment import Segment
from ottla.records.batch import BatchHeader, Buffer
from ottla.records.record import frames, payload


class TimeOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def first_at(segments: Sequence[Segment], timestamp: int, start_offset: int) -> TimeOffset | None:
    """The first record at or above `start_offset` whose timestamp is at or after `timestamp`."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        found = _first_in(segment, timestamp, start_offset)
        if found is not None:
            return found
    return None


def _first_in(segment: Segment, timestamp: int, start_offset: int) -> TimeOffset | None:
    # Everything up to the last index entry before the moment is older, so the search may begin behind it.
    indexed = segment.times.lookup(timestamp - 1)[1]
    begin = segment.find(max(indexed, start_offset))
    if begin is None:
        return None
    for batch in scan(segment.file, begin[0], segment.size_bytes, whole=True):
        if batch.header.max_timestamp >= timestamp:
            for offset, time in _times(batch.data, batch.at, batch.header):
                if time >= timestamp and offset >= start_offset:
                    return TimeOffset(offset, time, batch.header.leader_epoch)
    return None


def largest(segments: Sequence[Segment], start_offset: int) -> TimeOffset | None:
    """The earliest record that carries the largest timestamp."""
    best = max((segment.max_timestamp for segment in segments), default=-1)
    if best < 0:
        return None
    for segment in segments:
        if segment.max_timestamp == best:
            found = _first_in(segment, best, start_offset)
            if found is not None:
                return found
    return None


def _times(data: Buffer, at: int, header: BatchHeader) -> list[tuple[int, int]]:
    """(offset, timestamp) of every record; with LogAppendTime all share the header's."""
    if header.is_log_append_time:
        return [(header.base_offset, header.max_timestamp)]
    return [(frame.offset, frame.timestamp) for frame in frames(payload(data, at, header), header)]
