"""The log of one partition: a façade over segments, indexes, producers and epochs. One writer (the event loop), no
locks.

Rules:
- Offsets are dense as appended and never change. `log_start_offset` <= every readable offset < `next_offset`. The high
  watermark belongs to the replica, not to the log.
- `append` either puts the batch into the log and all bookkeeping, or raises and leaves everything as it was.
- Durability: `files_to_sync` / `mark_synced` let the shell sync in another thread; `recovery_point` follows. Index
  files are written when a segment is rolled, flushed or closed, see `index`.
- While the disk blocks its writers, batches are appended first and written later, by a worker (`unwritten`). Readers
  see the log up to `written_offset`.
- Deleting is in two steps, see `retention`; `remove_deleted` is the second one, for the shell to schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.log import append as appending
from ottla.log import committed, cut, lookup, replicate, retention
from ottla.log.append import Appended
from ottla.log.compaction import swap
from ottla.log.config import LogConfig
from ottla.log.cut import ProducersThen
from ottla.log.durable import Syncable
from ottla.log.files.checkpoint import PARTITION_METADATA, write_partition_metadata
from ottla.log.files.disk import Directory, Disk
from ottla.log.files.segment import Segment
from ottla.log.files.txn_index import AbortedTxn
from ottla.log.look import Look
from ottla.log.producers.producer import ProducerEntry
from ottla.log.producers.producers import Origin
from ottla.log.recovery.recover import Progress, recover
from ottla.log.state import LogSlice, LogState, MayWait, OnRoll
from ottla.model.ids import LeaderEpoch

__all__ = ["Appended", "Log", "LogSlice", "Origin"]


class Log(LogState):
    __slots__ = ()

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        now_ms: int,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        spare_below: int = 0,
        clean: bool = False,
        progress: Progress | None = None,
        topic_id: bytes | None = None,
        on_roll: OnRoll | None = None,
        may_wait: MayWait | None = None,
    ) -> Log:
        """Open a partition directory, recovering it unless it was closed cleanly; created if absent.

        Records below `spare_below` are not needed any more, so that damage there does not end the log. `on_roll` is
        called with the log when a segment was rolled. `may_wait` is asked whether a worker writes appended batches
        while the disk is slow; without it they are always written at once.
        """
        log = cls(Directory(disk, directory), config, on_roll, may_wait)
        if disk.exists(directory):
            log._recover(now_ms, recovery_point, spare_below, clean, progress)
        else:
            disk.make_directory(directory)
            log.durable.names_changed = True
            if topic_id is not None:
                write_partition_metadata(log.directory, topic_id, sync=False)
        log._settle_start(log_start_offset, now_ms)
        return log

    def _recover(
        self, now_ms: int, recovery_point: int, spare_below: int, clean: bool, progress: Progress | None
    ) -> None:
        found = recover(
            self.directory,
            self.config,
            self.epochs,
            self.producers,
            self.snapshots,
            self.durable.seams,
            now_ms=now_ms,
            recovery_point=recovery_point,
            spare_below=spare_below,
            clean=clean,
            progress=progress,
        )
        self.segments = found.segments
        self.next_offset = found.next_offset
        self.cut_bytes = found.cut_bytes
        self.durable.recovery_point = self.next_offset if clean else min(recovery_point, self.next_offset)
        self.durable.rolled = found.segments[found.scanned_from : -1]
        if not clean:
            self.durable.doubt()
        if self.segments:
            self.active = self.segments[-1]
            if found.scanned_from == len(self.segments):
                self.active.resume(self.next_offset)

    def _settle_start(self, log_start_offset: int, now_ms: int) -> None:
        """Settle where the log starts; after a loss of data the log start may be beyond the end."""
        if self.segments and log_start_offset > self.next_offset:
            cut.drop_all(self)
        if not self.segments:
            self.next_offset = self.durable.recovery_point = log_start_offset
            self.add_segment(now_ms)
        self.bases = [segment.base_offset for segment in self.segments]
        self.last_read = self.active
        self.mark(self.next_offset)
        self.log_start_offset = max(log_start_offset, self.bases[0])
        self.epochs.truncate_from_start(self.log_start_offset)

    # --- appending

    def append(
        self,
        records: bytearray | memoryview,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = -1,
        look: Look | None = None,
    ) -> Appended:
        """Validate, stamp in place and write. A client sends one batch; coordinators and leaders may send several."""
        if self.cut_at is not None:
            cut.finish(self, now_ms)
        if origin is Origin.CLIENT:
            return appending.append_one(self, records, leader_epoch, now_ms, look)
        return appending.append_several(self, records, leader_epoch, now_ms, origin, transaction_version)

    def append_replicated(self, records: bytes | memoryview, leader_epoch: LeaderEpoch, now_ms: int) -> int:
        """Append a leader's batches, as they are; return how many bytes were new. All of them or none."""
        if self.cut_at is not None:
            cut.finish(self, now_ms)
        return replicate.append(self, records, leader_epoch, now_ms)

    # --- reading

    def time_search(self, timestamp: int | None) -> lookup.TimeSearch:
        """Return a search for the first record at or after `timestamp`, or (None) with the largest timestamp."""
        if timestamp is None:
            return lookup.largest(self.segments, self.log_start_offset)
        return lookup.TimeSearch(self.segments, timestamp, self.log_start_offset)

    def written_ms(self, offset: int, end_offset: int) -> int | None:
        """Return the timestamp of the batch with the first record from `offset` on, below `end_offset`."""
        return lookup.written_ms(lambda from_: self.read(from_, 1, max_offset=end_offset).slice, offset)

    def epoch_end(self, leader_epoch: LeaderEpoch, max_offset: int | None = None) -> tuple[LeaderEpoch, int]:
        return self.epochs.end_offset(leader_epoch, self.next_offset if max_offset is None else max_offset)

    @property
    def first_unstable_offset(self) -> int | None:
        return self.producers.first_unstable_offset()

    def read_committed(
        self, offset: int, max_bytes: int, *, max_offset: int, at_least_one: bool, aborted_max: int
    ) -> tuple[LogSlice, list[AbortedTxn]]:
        """Like `read`, with the aborted transactions in the range, which is shortened if there are too many of them."""
        return committed.read(
            self, offset, max_bytes, max_offset=max_offset, at_least_one=at_least_one, aborted_max=aborted_max
        )

    def producer_states(self) -> Iterator[ProducerEntry]:
        return iter(self.producers)

    def expire_producers(self, now_ms: int) -> int:
        """Forget the producers that were idle for producer.id.expiration.ms; return how many."""
        return self.producers.expire(now_ms, self.config.producer_expiration_ms)

    def minute(self) -> None:
        """Advance the producers' clock; called about once a minute."""
        self.producers.minute(self.next_offset)

    @property
    def size_bytes(self) -> int:
        return sum(segment.file.size for segment in self.segments)

    # --- durability

    @property
    def recovery_point(self) -> int:
        """The offset below which everything is on disk; stored in the recovery-point checkpoint."""
        return self.durable.recovery_point

    @property
    def unflushed(self) -> int:
        """The number of records that a loss of power could destroy."""
        return self.next_offset - self.durable.recovery_point

    @property
    def has_unsynced_segments(self) -> bool:
        """Whether a rolled segment is not on disk as a whole."""
        return bool(self.durable.rolled)

    def files_to_sync(self) -> list[Syncable]:
        """Return what must be synced, in this order, to make everything below the current `next_offset` durable.

        One sync per log at a time: `mark_synced` or `sync_failed` before the next call.
        """
        if self.cut_at is not None:
            cut.finish(self, 0)
        if not self.durable.names_changed:
            return self.durable.files(self.active, [], self.next_offset)
        # The topic id must be durable as well: without it the log would be taken for that of another topic.
        identity = PARTITION_METADATA if self.directory.exists(PARTITION_METADATA) else None
        extra = [self.epochs.file(), self.directory.open(identity) if identity else None]
        extra += map(self.snapshots.file, [*self.bases[-2:], self.next_offset])
        return self.durable.files(self.active, [file for file in extra if file is not None], self.next_offset)

    def mark_synced(self) -> int:
        """Note that the last `files_to_sync` are on disk; return the offset up to which the log is durable by that.

        That is the `next_offset` of then, or less if the log was truncated since.
        """
        return self.durable.done()

    def sync_failed(self) -> None:
        """Note that the sync of the last `files_to_sync` failed: the files are not known to be on disk."""
        self.durable.failed()

    def flush(self) -> None:
        """Sync everything now, in this thread."""
        try:
            for file in self.files_to_sync():
                file.sync()
        except BaseException:
            self.sync_failed()
            raise
        self.mark_synced()

    # --- truncating and deleting

    def truncate_to(self, offset: int, *, now_ms: int = 0, producers: ProducersThen | None = None) -> bool:
        """Remove everything at or above `offset`; True if anything was removed.

        `producers` is from `cut.producers_at`.
        """
        return cut.truncate_to(self, offset, now_ms, producers)

    def truncate_fully_and_start_at(self, offset: int, *, now_ms: int = 0) -> None:
        """Remove everything and continue at `offset` (a follower whose leader no longer has the next offsets)."""
        cut.start_anew(self, offset, now_ms)

    def advance_log_start(self, offset: int) -> bool:
        """Advance the log start offset (DeleteRecords): nothing below `offset` can be read any more.

        The next retention run deletes whole segments below it.
        """
        if offset <= self.log_start_offset or offset > self.next_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        return True

    def delete_old_segments(self, now_ms: int, high_watermark: int, at_most: int | None = None) -> int:
        """Apply retention; return how many segments left the log. `remove_deleted` removes their files."""
        count = retention.expired(
            self.segments,
            self.config,
            now_ms=now_ms,
            log_start_offset=self.log_start_offset,
            next_offset=self.next_offset,
            high_watermark=high_watermark,
        )
        if at_most is not None:
            count = min(count, at_most)
        if count == len(self.segments):
            self.roll(now_ms)
        for _ in range(count):
            self.take_out(self.segments[0], now_ms)
        if count and self.bases[0] > self.log_start_offset:
            self.log_start_offset = self.bases[0]
            self.epochs.truncate_from_start(self.log_start_offset)
        return count

    def replace(self, new: Iterable[Segment], old: Iterable[Segment], now_ms: int) -> None:
        """Replace the segments `old` by `new`, which compaction has completed, synced and named `.cleaned`."""
        swap.replace(self, new, old, now_ms)

    def remove_deleted(self, now_ms: int) -> int | None:
        """Remove the files whose delay is over; return when the next ones are due, None if nothing is left."""
        return self.deleted_segments.remove_due(now_ms)

    def close(self, *, sync: bool = True) -> None:
        """Leave the directory in the state of a clean stop; without `sync` the caller must sync it (see `closing`)."""
        self.write_waiting()
        end = self.next_offset
        complete = end == 0 or (end in self.snapshots.offsets and self.active.indexes_complete())
        if self.epochs.is_stale:
            self.epochs.write()
            self.durable.names_changed = True
        if not complete:
            self.active.write_indexes()
            self.snapshots.write(end, self.producers.snapshot())
            self.durable.rolled.append(self.active)
            self.durable.names_changed = True
        if sync and self.needs_sync:
            self.flush()
        self.deleted_segments.empty()
        self.release()

    @property
    def needs_sync(self) -> bool:
        """Whether anything is not known to be on disk."""
        return self.unflushed > 0 or bool(self.durable.rolled) or self.durable.names_changed
