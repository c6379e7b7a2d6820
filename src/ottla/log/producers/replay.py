"""Replays producers' state from the headers of trusted batches: nothing is checked, nothing is rebuilt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.log.files.scan import ScannedBatch, scan
from ottla.log.files.segment import Segment
from ottla.log.producers.producers import Producers
from ottla.records.batch import CONTROL_FLAG
from ottla.records.control import read_marker


def replay(producers: Producers, segments: Iterable[Segment], start: int, end: int) -> None:
    """Apply the batches of the segments in [start, end) to the producers."""
    for segment in segments:
        found = segment.find(start) if start < end else None
        if found is not None and _replay_from(producers, segment, found[0], start, end):
            return


def replay_closed(producers: Producers, segments: Sequence[Segment], start: int, end: int) -> None:
    """Like `replay`, without using an index, which belongs to the event loop: a worker thread may call this."""
    following = [*(segment.base_offset for segment in segments[1:]), end]
    for segment, next_base in zip(segments, following, strict=True):
        if next_base > start and _replay_from(producers, segment, 0, start, end):
            return


def _replay_from(producers: Producers, segment: Segment, position: int, start: int, end: int) -> bool:
    """Apply batches; return True at the first batch that does not lie below `end` as a whole."""
    for batch in scan(segment.file, position, segment.size_bytes, whole=False):
        if batch.header.last_offset >= end:
            return True
        if batch.header.producer_id >= 0 and batch.header.base_offset >= start:
            _apply(producers, segment, batch)
    return False


def _apply(producers: Producers, segment: Segment, batch: ScannedBatch) -> None:
    header = batch.header
    if not header.attributes & CONTROL_FLAG:
        producers.update(header, header.base_offset, header.max_timestamp)
        return
    marker = read_marker(segment.file.read(batch.position, header.size_bytes))
    if marker is not None:
        producers.end_transaction(header, marker, header.base_offset, header.max_timestamp)
