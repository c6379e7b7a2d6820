"""Reads the last batches of producers back from the end of a log.

Kafka's snapshot holds only the last batch of each producer. If the leader restarts while a producer has five requests
in flight, the producer's retries would be refused, because they are no longer recognised as duplicates; and a client
that then takes a new producer id writes the records a second time. So after a snapshot was loaded the headers before it
are read, from the index entry nearest to the end backwards in growing steps, until every producer has its batches
again.

Rules:
- A batch counts only if it precedes a remembered batch without a gap, in the same epoch.
- The number of headers is bounded, so that a start does not get slow; a producer that is not completed is no worse off
  than with Kafka.
"""

from __future__ import annotations

from ottla.log.files.scan import scan
from ottla.log.files.segment import Segment
from ottla.log.producers.producers import Producers
from ottla.model.limits import INDEX_READ_BYTES, RECALL_BATCHES_MAX
from ottla.records.batch import CONTROL_FLAG, BatchHeader

_FIRST_STEP_OFFSETS = 64
_GROWTH = 4


def recall(producers: Producers, segments: list[Segment], end_offset: int) -> None:
    """Complete the `producers`, restored from a snapshot at `end_offset`, with the batches before it."""
    step, left = _FIRST_STEP_OFFSETS, RECALL_BATCHES_MAX
    for segment in reversed(segments):
        start = end_offset
        while start > segment.base_offset:
            if left <= 0 or not producers.incomplete:
                return
            start = max(end_offset - step, segment.base_offset)
            found = _headers(segment, start, end_offset)
            for header in reversed(found):
                producers.recall(header)
            left -= len(found)
            step *= _GROWTH


def _headers(segment: Segment, start: int, end_offset: int) -> list[BatchHeader]:
    """Return the headers of producers' data batches, from the index entry before `start` on."""
    position = segment.offsets.lookup(start)
    found: list[BatchHeader] = []
    for batch in scan(segment.file, position, segment.size_bytes, whole=False, read_bytes=INDEX_READ_BYTES):
        header = batch.header
        if header.base_offset >= end_offset:
            break
        if header.producer_id >= 0 and not header.attributes & CONTROL_FLAG:
            found.append(header)
    return found
