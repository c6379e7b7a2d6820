"""Whether a log that was closed in order is still what was closed. Looked at when it is opened, before anything is
changed.

A scan takes what can be no batch for the end of the log; after a crash that is right, and the rest is cut off. After a
clean stop everything was acknowledged and synced, so damage there is a loss of records, and nothing may go on as if
they had never been written: DamagedError. Kafka refuses to start where a length is too small, and goes on without the
records where it is too large.

Rules:
- The witness is the producer snapshot that a clean stop leaves at the end of the log: it bears that offset in its name.
- Bytes behind that end (a write that failed and could not be undone) are no loss: recovery cuts them off.
- Next to nothing is read for it: what lies behind the last entry of the last index, as each start does anyway. Only
  segments whose indexes must be rebuilt are walked through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ottla.log.files.disk import DamagedError
from ottla.log.files.scan import is_sound, scan
from ottla.log.files.segment import Segment
from ottla.log.producers.snapshot import Snapshots
from ottla.model.limits import INT64_MAX


def look(segments: Sequence[Segment], first: int, snapshots: Snapshots, spare_below: int) -> tuple[int, int]:
    """The number of the first segment that must be scanned, from `first` on backwards, and where the log ends.

    Damage below `spare_below` is none of this module's business (see `recover`).
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
    """Whether the log was closed at `end`, and the batch before it is as long as it says."""
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
