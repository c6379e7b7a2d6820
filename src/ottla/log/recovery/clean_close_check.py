"""Checks, when a log is opened and before anything is changed, whether a log that was closed cleanly is unchanged.

A scan takes bytes that cannot be a batch for the end of the log; after a crash that is right, and the rest is
truncated. After a clean stop everything was acknowledged and synced, so damage there is a loss of records, and the node
must not go on as if they had never been written: DamagedError. Kafka refuses to start if a length is too small, and
goes on without the records if it is too large.

Rules:
- The evidence is the producer snapshot that a clean stop leaves at the end of the log: its name has that offset.
- Bytes behind that end (of a failed write that could not be undone) are no loss: recovery truncates them.
- Next to nothing is read for the check: the part behind the last index entry, which every start reads anyway. Only
  segments whose indexes must be rebuilt are read completely.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ottla.log.files.disk import DamagedError
from ottla.log.files.scan import is_sound, scan
from ottla.log.files.segment import Segment
from ottla.log.producers.snapshot import Snapshots
from ottla.model.limits import INT64_MAX


def check(segments: Sequence[Segment], first: int, snapshots: Snapshots, spare_below: int) -> tuple[int, int]:
    """Return the first segment that must be scanned, `first` or an earlier one, and the end offset of the log.

    Damage below `spare_below` is ignored here (see `recover`).
    """
    last = segments[-1]
    for segment in segments[first:-1]:
        _check(segment, spare_below)
    indexed = first == len(segments)
    end, position = last.end(last.offsets.last()[1] if indexed else 0)
    if snapshots.offsets and snapshots.offsets[-1] > end:
        closed = snapshots.take_newest(INT64_MAX)
        if closed is not None and closed[0] > end:
            raise DamagedError(
                f"{last.file.path} ends at offset {end}, at byte {position} of {last.size_bytes}, but the log was "
                f"closed in order at offset {closed[0]}"
            )
    if position < last.size_bytes:
        if not _vouched(last, end, snapshots):
            _refuse(last, end, position, spare_below)
        return min(first, len(segments) - 1), end
    return first, end


def _vouched(last: Segment, end: int, snapshots: Snapshots) -> bool:
    """Whether a snapshot proves that the log was closed at `end`, and the batch before `end` is sound."""
    closed = snapshots.take_newest(end)
    if closed is None or closed[0] != end:
        return False
    batch = deque(scan(last.file, 0, last.size_bytes, whole=True), maxlen=1)
    return not batch or is_sound(batch[0])


def _check(segment: Segment, spare_below: int) -> None:
    end, position = segment.end(0)
    if position < segment.size_bytes:
        _refuse(segment, end, position, spare_below)


def _refuse(segment: Segment, end: int, position: int, spare_below: int) -> None:
    if end >= spare_below:
        raise DamagedError(
            f"{segment.file.path} was closed in order, but what it holds at byte {position}, at offset {end}, is no "
            "batch"
        )
