"""Which log to compact next, how far, and how fast.

A log is clean below its first dirty offset (the checkpoint `cleaner-offset-checkpoint` of its data directory) and
uncleanable from the first segment on that is the active one, holds the last stable offset, or has a record younger than
min.compaction.lag.ms. The part between is due when it makes up more than min.cleanable.dirty.ratio of both together, or
when its oldest record is older than max.compaction.lag.ms.

Rules: nothing here changes a log; `CleanOffsets` is the only state, one per data directory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from ottla.log.files.checkpoint import CLEANER_OFFSETS, CheckpointError, read_offsets, write_offsets
from ottla.log.files.disk import Disk
from ottla.log.log import Log
from ottla.model.ids import TopicPartition

Key = TypeVar("Key")


class Cleanable(NamedTuple):
    """The part of a log that could be cleaned now."""

    first_dirty_offset: int
    first_uncleanable_offset: int  # always the base offset of a segment
    clean_bytes: int
    dirty_bytes: int
    overdue: bool  # max.compaction.lag.ms has passed
    reset: bool  # the checkpoint was outside the log and must be written again

    @property
    def ratio(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0

    def is_due(self, min_ratio: float) -> bool:
        return self.dirty_bytes > 0 and (self.overdue or self.ratio > min_ratio)


def cleanable(log: Log, clean_offset: int | None, *, last_stable_offset: int, now_ms: int) -> Cleanable:
    """Return the cleanable part of a log. `clean_offset` is the checkpoint, None if there is none."""
    start = log.log_start_offset
    reset = clean_offset is not None and not start <= clean_offset <= log.next_offset
    first_dirty = start if clean_offset is None or reset else clean_offset
    bases = [segment.base_offset for segment in log.segments]
    closed = log.segments[:-1]
    limit = min(last_stable_offset, bases[-1])
    if log.config.min_compaction_lag_ms > 0:
        young_ms = now_ms - log.config.min_compaction_lag_ms
        for segment, next_base in zip(closed, bases[1:], strict=True):
            if next_base > first_dirty and segment.max_timestamp > young_ms:
                limit = min(limit, segment.base_offset)
                break
    # Only whole segments are cleaned: the one that holds the limit is left alone.
    first_uncleanable = bases[max(bisect_right(bases, max(limit, first_dirty)) - 1, 0)]
    clean_bytes = dirty_bytes = 0
    earliest_ms: int | None = None
    for segment, next_base in zip(closed, bases[1:], strict=True):
        if next_base <= first_dirty:
            clean_bytes += segment.size_bytes
            continue
        if segment.base_offset < first_uncleanable:
            dirty_bytes += segment.size_bytes
        if segment.first_timestamp > 0:
            earliest_ms = segment.first_timestamp if earliest_ms is None else min(earliest_ms, segment.first_timestamp)
    overdue = earliest_ms is not None and earliest_ms < now_ms - max(log.config.max_compaction_lag_ms, 0)
    return Cleanable(first_dirty, first_uncleanable, clean_bytes, dirty_bytes, overdue, reset)


def dirtiest(candidates: Iterable[tuple[Key, Cleanable, float]]) -> Key | None:
    """Choose the log to clean next from (key, cleanable part, min.cleanable.dirty.ratio); None if none is due."""
    due = [(found.ratio, key) for key, found, min_ratio in candidates if found.is_due(min_ratio)]
    return max(due, key=lambda entry: entry[0])[1] if due else None


class CleanOffsets:
    """The first dirty offset of every compacted log of one data directory, as in `cleaner-offset-checkpoint`."""

    __slots__ = ("_disk", "_offsets")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        try:
            self._offsets = read_offsets(disk, CLEANER_OFFSETS)
        except CheckpointError:
            # Without the checkpoint the logs are cleaned from their start again, which only costs work.
            self._offsets = {}

    def get(self, partition: TopicPartition) -> int | None:
        return self._offsets.get(partition)

    def known(self) -> list[TopicPartition]:
        return list(self._offsets)

    def set(self, partition: TopicPartition, offset: int) -> bool:
        """Set an offset, which is on disk after the next `saving`; return whether it changed."""
        changed = self._offsets.get(partition) != offset
        self._offsets[partition] = offset
        return changed

    def truncate(self, partition: TopicPartition, offset: int) -> bool:
        """Lower the offset after a truncation: records written behind `offset` from now on are not clean."""
        return self._offsets.get(partition, -1) > offset and self.set(partition, offset)

    def drop(self, *partitions: TopicPartition) -> bool:
        """Forget logs that are gone, or no longer compacted."""
        return bool([self._offsets.pop(partition) for partition in partitions if partition in self._offsets])

    def saving(self) -> Callable[[], None]:
        """Return a function that writes the file as of now, in any thread. A stale file only costs some cleaning."""
        return partial(write_offsets, self._disk, CLEANER_OFFSETS, dict(self._offsets))


class Throttle:
    """log.cleaner.io.max.bytes.per.second: how long to sleep after this many bytes, so that the average holds."""

    __slots__ = ("_bytes_per_second", "_free_at_ms")

    def __init__(self, bytes_per_second: float) -> None:
        self._bytes_per_second = bytes_per_second
        self._free_at_ms = 0.0

    def wait_ms(self, size_bytes: int, now_ms: float) -> float:
        self._free_at_ms = max(self._free_at_ms, now_ms) + 1000.0 * size_bytes / self._bytes_per_second
        return self._free_at_ms - now_ms
