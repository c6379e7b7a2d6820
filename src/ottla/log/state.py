"""The state of one partition's log, and the steps that all operations on it share.

Rules:
- Offsets are dense as appended and never change. `log_start_offset` <= every readable offset < `next_offset`.
- `bases` are the base offsets of `segments`, ascending; `active` is the last of them, and the only one that grows.
- Appending, truncating and swapping segments are functions of a `LogState`, in modules of their own (`append`,
  `replicate`, `cut`, `compaction/swap`); `Log` puts them together for its users.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple, TypeAlias
from zlib import crc32

from ottla.log.config import LogConfig
from ottla.log.deleted_segments import DeletedSegments
from ottla.log.durable import Durable
from ottla.log.epochs import Epochs
from ottla.log.files.disk import Directory, FileSlice
from ottla.log.files.segment import Segment
from ottla.log.look import may_be_needed
from ottla.log.producers.producers import Producers
from ottla.log.producers.snapshot import Snapshots
from ottla.log.unwritten import Unwritten
from ottla.log.validate import header_is_enough
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.model.limits import MARK_INTERVAL_BYTES

_new = tuple.__new__

OnRoll: TypeAlias = "Callable[[LogState], None]"
MayWait: TypeAlias = "Callable[[LogState], bool]"


class LogSlice(NamedTuple):
    """A readable range: `slice` is None if it is empty. All records of the slice lie below `end_offset`."""

    slice: FileSlice | None
    size_bytes: int
    end_offset: int


class LogState:
    """Segments, indexes, producers and epochs of one partition, consistent with each other after each step."""

    __slots__ = (
        "_may_wait",
        "_on_roll",
        "active",
        "bases",
        "batch_bytes_max",
        "config",
        "cut_at",
        "cut_bytes",
        "deleted_segments",
        "directory",
        "durable",
        "epochs",
        "header_enough",
        "last_read",
        "log_start_offset",
        "looks_inside",
        "mark_due",
        "name",
        "next_offset",
        "producers",
        "roll_ms",
        "segments",
        "snapshots",
        "unwritten",
    )

    def __init__(
        self, directory: Directory, config: LogConfig, on_roll: OnRoll | None, may_wait: MayWait | None
    ) -> None:
        """Use `Log.open` instead."""
        self.directory = directory
        self._on_roll = on_roll
        self._may_wait = may_wait
        self.name = directory.path.rpartition("/")[2]
        self.log_start_offset = 0
        self.next_offset = 0
        self.cut_bytes = 0  # bytes that recovery removed
        self.cut_at: int | None = None  # the offset of a failed truncation that has to be finished, see `cut`
        self.mark_due = 0  # the number of index entries in the active segment at which the next mark is set
        self.unwritten = Unwritten()
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.active: Segment
        self.last_read: Segment
        self.epochs = Epochs(directory)
        self.producers = Producers(self.name)
        self.snapshots = Snapshots(directory)
        self.deleted_segments = DeletedSegments(directory)
        self.durable = Durable(directory)
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        """Adopt changed settings; they hold from the next append on."""
        self.config = config
        self.header_enough = header_is_enough(config)
        self.looks_inside = may_be_needed(config)
        self.batch_bytes_max = min(config.max_message_bytes, config.segment_bytes)
        self._set_roll_ms()
        for segment in self.segments:
            segment.interval_bytes, segment.index_bytes = config.index_interval_bytes, config.index_bytes

    def _set_roll_ms(self) -> None:
        """Set the age at which the active segment is rolled; jitter keeps partitions from rolling together."""
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        base = self.segments[-1].base_offset if self.segments else 0
        self.roll_ms = self.config.segment_ms - (crc32(f"{self.name}@{base}".encode()) % jitter if jitter else 0)

    # --- growing

    def begin_epoch(self, leader_epoch: LeaderEpoch, offset: int) -> None:
        """Begin another leader epoch with the next batch, at `offset`."""
        self.epochs.assign(leader_epoch, offset)
        self.durable.names_changed = True

    def roll(self, now_ms: int) -> Segment:
        """Begin a new segment at `next_offset`; nothing to do if the active one is empty and begins there."""
        old = self.active
        if old.base_offset == self.next_offset and not old.size_bytes:
            return old
        self.durable.roll(old, self.next_offset)
        old.seal()
        self.snapshots.write(self.next_offset, self.producers.snapshot())
        segment = self.add_segment(now_ms)
        self.durable.rolled.append(old)
        if self._on_roll is not None:
            self._on_roll(self)
        return segment

    def add_segment(self, now_ms: int) -> Segment:
        """Begin an empty segment at `next_offset` and make it the active one."""
        segment = Segment(
            self.directory,
            self.next_offset,
            interval_bytes=self.config.index_interval_bytes,
            index_bytes=self.config.index_bytes,
            now_ms=now_ms,
        )
        self.segments.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment
        self.durable.names_changed = True
        self._set_roll_ms()
        self.mark(self.next_offset)
        return segment

    def mark(self, offset: int) -> None:
        """Mark the producers' present state, which results from batches below `offset`, for a later truncation.

        A mark is due before a producer's batch when the index has `mark_due` entries: a truncation then reads little.
        """
        segment = self.active
        self.mark_due = segment.offsets.count + max(MARK_INTERVAL_BYTES // max(segment.interval_bytes, 1), 1)
        self.producers.set_mark(offset, self.mark_due)

    @property
    def written_offset(self) -> int:
        """The end of the batches that are in the files: `next_offset`, unless the disk is slow.

        Readers may not see more.
        """
        return self.unwritten[0].first_offset if self.unwritten else self.next_offset

    def may_wait(self) -> bool:
        """Return whether a worker writes appended batches while the disk is slow."""
        return self._may_wait is not None and self._may_wait(self)

    def write_waiting(self) -> None:
        """Write all pending batches now, in this thread."""
        for file in self.unwritten.files():
            file.write_waiting()
        self.unwritten.settle()

    # --- reading

    def read(self, offset: int, max_bytes: int, *, max_offset: int, at_least_one: bool = True) -> LogSlice:
        """Return whole batches from the one that holds `offset` on, all of whose records lie below `max_offset`.

        The slice may end within a batch if `max_bytes` cuts it; the first batch is returned whole if `at_least_one`.
        """
        if not self.log_start_offset <= offset <= self.next_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.name}, but we only have log segments from "
                f"offset {self.log_start_offset} up to {self.next_offset}.",
            )
        if offset >= max_offset:
            return LogSlice(None, 0, offset)
        segments = self.segments
        number = bisect_right(self.bases, offset) - 1
        found = segments[number].find(offset)
        while found is None:
            # Compaction may have emptied the rest of this segment.
            number += 1
            if number == len(segments):
                return LogSlice(None, 0, offset)
            found = segments[number].find(offset)
        segment = segments[number]
        if segment is not self.last_read:
            # Only one closed segment per log keeps a part of its index in memory.
            self.last_read.offsets.forget()
            self.last_read = segment
        position, first_bytes = found
        end_offset = self.bases[number + 1] if number + 1 < len(segments) else self.next_offset
        end = segment.file.size
        if max_offset < end_offset:
            end_offset = max_offset
            limit = segment.find(max_offset)
            end = limit[0] if limit is not None else end
        size_bytes = end - position
        if size_bytes > max_bytes:
            left_bytes, size_bytes = size_bytes, max(max_bytes, first_bytes if at_least_one else 0)
            if size_bytes < first_bytes:
                return LogSlice(None, 0, offset)
            size_bytes = min(size_bytes, left_bytes)  # a damaged length may be larger than the rest of the file
        if size_bytes <= 0:
            return LogSlice(None, 0, offset)
        return _new(LogSlice, (FileSlice(segment.file, position, size_bytes), size_bytes, end_offset))

    # --- removing segments

    def take_out(self, segment: Segment, now_ms: int, *, keep_snapshot: bool = False) -> None:
        """Take one segment out of the log; its files are removed file.delete.delay.ms later."""
        self.deleted_segments.add(segment, now_ms + self.config.file_delete_delay_ms)
        at = self.segments.index(segment)
        following = self.bases[at + 1] if at + 1 < len(self.bases) else self.next_offset
        del self.segments[at], self.bases[at]
        self.durable.forget(segment)
        self.durable.seams.remove_range(segment.base_offset, following + 1)
        if not keep_snapshot:
            self.snapshots.mark_deleted(segment.base_offset)

    def release(self) -> None:
        """Release all descriptors."""
        for segment in self.segments:
            for file in segment.files():
                file.close()
