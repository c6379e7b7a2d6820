"""Cutting the end of a log off: a follower that diverged from its leader, or a sync that failed.

Everything derived from the records (indexes, epochs, producers, snapshots, the recovery point) is brought back to what
it was at the offset. Cut segments are removed at once: what they held was never committed, nobody may read it any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.log.recall import recall
from ottla.log.recover import replay
from ottla.model.limits import INT64_MAX

if TYPE_CHECKING:
    from ottla.log.log import Log
    from ottla.log.segment import Segment


def truncate_to(log: Log, offset: int, now_ms: int) -> bool:
    """Cut everything at or above `offset`; True if anything went.

    After a StorageError the log remembers what it has to do (`cut_at`), and does it before the next append or sync.
    """
    if offset >= log.next_offset and log.cut_at is None:
        return False
    log.cut_at = offset if log.cut_at is None else min(offset, log.cut_at)
    log.durable.cut(log.cut_at)  # also if the cut fails now: a sync under way must not vouch for what has to go
    finish(log, now_ms)
    return True


def finish(log: Log, now_ms: int) -> None:
    """Do what `cut_at` says; every step can be done again if a later one failed."""
    offset = log.cut_at
    assert offset is not None, "nothing was to be cut"
    if not log.bases or offset < log.bases[0]:
        start_anew(log, offset, now_ms)
    else:
        while log.bases[-1] > offset:
            _remove(log, log.segments[-1])
            log.segments.pop()
            log.bases.pop()
        log.active = log.segments[-1]
        log.active.truncate(offset)
        # Batches go as a whole: an offset within one cuts all of it.
        log.next_offset = log.active.resume(log.active.next_offset())
        _settle(log, now_ms)
    log.cut_at = None


def start_anew(log: Log, offset: int, now_ms: int) -> None:
    """Throw everything away and go on at `offset`."""
    log.durable.cut(offset)
    drop_all(log)
    log.next_offset = offset
    log.add_segment(now_ms)
    log.log_start_offset = offset
    _settle(log, now_ms)


def drop_all(log: Log) -> None:
    for segment in reversed(log.segments):
        _remove(log, segment)
    log.segments.clear()
    log.bases.clear()
    log.snapshots.remove_range(0, INT64_MAX)
    log.epochs.clear()
    log.producers.clear()


def _settle(log: Log, now_ms: int) -> None:
    end = log.next_offset
    log.log_start_offset = min(log.log_start_offset, end)
    log.durable.cut(end)
    log.durable.forget(log.active)
    log.epochs.truncate_from_end(end)
    log.snapshots.remove_range(end + 1, INT64_MAX)
    snapshot = log.snapshots.newest(end)
    start, entries = snapshot if snapshot is not None else (0, [])
    log.producers.restore(entries, now_ms, log.config.producer_expiration_ms)
    recall(log.producers, log.segments, start)
    replay(log.producers, log.segments, start, end)


def _remove(log: Log, segment: Segment) -> None:
    log.durable.forget(segment)
    segment.remove()
    log.snapshots.remove_range(segment.base_offset, segment.base_offset + 1)
    log.durable.seams.remove_range(segment.base_offset, segment.base_offset + 1)
