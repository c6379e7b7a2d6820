"""Truncates the end of a log: on a follower that diverged from its leader, or after a sync that failed.

Everything derived from the records (indexes, epochs, producers, snapshots, the recovery point) is reset to its state at
the offset. Truncated segments are removed at once: their records were never committed and must not be read any more.

The producers' state comes from the newest mark before the offset (`marks`) and the few batches behind it. Without such
a mark all headers since the last snapshot must be read (`is_long`), which may take seconds: a caller that can wait
calls `producers_at` in a worker thread first, and truncates then.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ottla.log.producers.producers import Producers
from ottla.log.producers.recall import recall
from ottla.log.producers.replay import replay, replay_closed
from ottla.log.state import LogState
from ottla.model.limits import INT64_MAX, MARK_INTERVAL_BYTES

if TYPE_CHECKING:
    from ottla.log.files.segment import Segment


def is_long(log: LogState, offset: int) -> bool:
    """Whether truncating at `offset` takes long, unless `producers_at` is called before."""
    if not log.bases[0] <= offset < log.next_offset or not len(log.producers):
        return False
    at = bisect_right(log.bases, offset) - 1
    found = log.segments[at].find(offset) if log.bases[at] in log.snapshots.offsets or not at else None
    is_near = found is not None and found[0] <= MARK_INTERVAL_BYTES
    return not is_near and not log.producers.has_mark(offset, log.bases[0])


class ProducersThen(NamedTuple):
    """The producers' state at some offset, and the snapshots that turned out to be damaged."""

    producers: Producers
    damaged: list[int]


def producers_at(log: LogState, offset: int, now_ms: int) -> ProducersThen:
    """Return the producers' state when the log ended at `offset`. Changes nothing, and may run in a worker thread."""
    snapshot, damaged = log.snapshots.newest(offset)
    start, entries = snapshot if snapshot is not None else (0, [])
    producers = Producers(log.name)
    producers.restore(entries, now_ms, log.config.producer_expiration_ms)
    replay_closed(producers, tuple(log.segments), start, offset)
    return ProducersThen(producers, damaged)


def truncate_to(log: LogState, offset: int, now_ms: int, producers: ProducersThen | None = None) -> bool:
    """Remove everything at or above `offset`; True if anything was removed. `producers` is from `producers_at`.

    After a StorageError the log remembers the truncation (`cut_at`), and finishes it before the next append or sync.
    """
    if offset >= log.next_offset and log.cut_at is None:
        return False
    log.cut_at = offset if log.cut_at is None else min(offset, log.cut_at)
    # also if the truncation fails now: a sync under way must not count for the removed records
    log.durable.cut(log.cut_at)
    finish(log, now_ms, producers if log.cut_at == offset else None)
    return True


def finish(log: LogState, now_ms: int, producers: ProducersThen | None = None) -> None:
    """Carry out the truncation at `cut_at`; every step can be repeated if a later one failed."""
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
        # Only whole batches are removed: an offset within a batch removes all of it.
        log.next_offset = log.active.resume(log.active.next_offset())
        _settle(log)
        _take_producers_back(log, now_ms, producers)
    log.cut_at = None


def start_anew(log: LogState, offset: int, now_ms: int) -> None:
    """Remove everything and continue at `offset`."""
    log.durable.cut(offset)
    drop_all(log)
    log.next_offset = offset
    log.add_segment(now_ms)
    log.log_start_offset = offset
    _settle(log)


def drop_all(log: LogState) -> None:
    for segment in reversed(log.segments):
        _remove(log, segment)
    log.segments.clear()
    log.bases.clear()
    log.unwritten.clear()
    log.snapshots.remove_range(0, INT64_MAX)
    log.durable.seams.remove_range(0, INT64_MAX)
    log.epochs.clear()
    log.producers.clear()


def _settle(log: LogState) -> None:
    end = log.next_offset
    log.log_start_offset = min(log.log_start_offset, end)
    log.durable.cut(end)
    log.unwritten.cut(end)
    log.durable.forget(log.active)
    log.epochs.truncate_from_end(end)
    log.snapshots.remove_range(end + 1, INT64_MAX)
    log.durable.seams.remove_range(end + 1, INT64_MAX)


def _take_producers_back(log: LogState, now_ms: int, producers: ProducersThen | None) -> None:
    end = log.next_offset
    mark = log.producers.go_back(end, log.bases[0]) if producers is None else None
    if mark is not None:
        # Every segment begins with a mark, so this mark is in the last segment.
        entries = log.active.offsets
        behind = entries.entry(mark.due - 1)[0] if entries.count >= mark.due else end
        replay(log.producers, [log.active], mark.offset, min(end, behind))
    elif len(log.producers):
        log.producers, damaged = producers if producers is not None else producers_at(log, end, now_ms)
        log.snapshots.discard(damaged)
        recall(log.producers, log.segments, end)
    log.mark(end)


def _remove(log: LogState, segment: Segment) -> None:
    log.durable.forget(segment)
    segment.remove()
    log.snapshots.remove_range(segment.base_offset, segment.base_offset + 1)
