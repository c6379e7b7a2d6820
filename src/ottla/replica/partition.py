"""Partition: the leader's view of one partition over its log — high watermark, epochs, what may be read and when.

Rules:
- This node is the only replica for now: the high watermark follows the log's end at once, or, where records must be on
  disk before they count (`durable`), when `synced` says so. Followers slot in where `_advance` is called.
- `last_stable_offset` <= `high_watermark` <= `log.next_offset`. Consumers read below the high watermark, with
  READ_COMMITTED below the last stable offset.
- A request may name the leader epoch it believes in: an older one is fenced (FENCED_LEADER_EPOCH), a newer one unknown
  here (UNKNOWN_LEADER_EPOCH).
- A failed append leaves the log as it was, and the next one is tried afresh. A failed sync is different: nobody can
  know what of it is on disk, so everything above the high watermark is cut off (`sync_failed`).
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.disk import FileSlice, StorageError
from ottla.log.log import Appended, Log, Origin
from ottla.log.lookup import TimeOffset
from ottla.model.errors import ApiError, ErrorCode

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# In DeleteRecords: up to wherever the high watermark is.
HIGH_WATERMARK = -1
NO_EPOCH = -1
_NO_TIME = -1

_new = tuple.__new__


class Fetch(NamedTuple):
    """One partition's part of a fetch answer."""

    records: FileSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    diverging: tuple[int, int] | None  # (epoch, end offset) where the reader's history parts from ours


class Partition:
    __slots__ = ("cuts", "durable", "high_watermark", "index", "leader_epoch", "log", "topic")

    def __init__(
        self, topic: str, index: int, log: Log, *, leader_epoch: int, high_watermark: int | None = None
    ) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.high_watermark = log.next_offset
        # How often the end was cut off: who waits for an offset must know whether it is still the record it waits for.
        self.cuts = 0
        self.durable = False
        self._set_durable(log.config)
        if high_watermark is not None:
            self.high_watermark = min(max(high_watermark, log.log_start_offset), log.next_offset)
        if self.durable and log.unflushed:
            # What survived a crash counts from now on, so it must last from now on.
            log.flush()
        log.producers.replicated(self.high_watermark)

    def lead(self, leader_epoch: int) -> None:
        """This node leads the partition from now on, in this epoch."""
        self.leader_epoch = max(self.leader_epoch, leader_epoch)

    def configure(self, config: LogConfig) -> None:
        self.log.configure(config)
        self._set_durable(config)
        if not self.durable:
            self._advance(self.log.next_offset)

    def _set_durable(self, config: LogConfig) -> None:
        # flush.messages=1 is how one asks a Kafka for the same: it syncs each append before it answers.
        self.durable = config.fsync_before_ack or config.flush_messages == 1

    # --- writing

    def append(
        self,
        records: bytearray | memoryview,
        *,
        now_ms: int,
        leader_epoch: int | None = None,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = -1,
    ) -> Appended:
        """Append as the leader."""
        if leader_epoch is not None:
            self.check_epoch(leader_epoch)
        log = self.log
        appended = log.append(records, self.leader_epoch, now_ms, origin, transaction_version)
        if not self.durable:
            end = self.high_watermark = log.next_offset
            if log.producers.has_unreplicated:
                log.producers.replicated(end)
        return appended

    def _advance(self, high_watermark: int) -> None:
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self.log.producers.replicated(high_watermark)

    @property
    def needs_sync(self) -> bool:
        """Whether the shell should sync the log now: answers wait for it, or flush.messages are due."""
        log = self.log
        unflushed = log.next_offset - log.recovery_point
        return unflushed > 0 and (self.durable or unflushed >= log.config.flush_messages)

    def synced(self, offset: int) -> None:
        """Everything below `offset` is on disk (`log.files_to_sync` was taken when it was the end)."""
        self.log.mark_synced(offset)
        if self.durable:
            self._advance(min(offset, self.log.next_offset))

    def sync_failed(self, now_ms: int = 0) -> None:
        """A sync failed: its pages may be lost although they still read well, so only what was synced before stays."""
        self.log.sync_failed()
        if self.durable:
            self.cuts += 1  # also if it fails now: the log makes up for it before anything else is appended
            self.log.truncate_to(self.high_watermark, now_ms=now_ms)

    def deletion_point(self, offset: int) -> int:
        """Where `delete_records` would let the log start (-1: at the high watermark), or why it may not."""
        config = self.log.config
        if config.compact and not config.delete:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.name} can not be deleted due to the configured policy",
            )
        if offset == HIGH_WATERMARK:
            offset = self.high_watermark
        if offset < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"The offset {offset} for partition {self.name} is not valid")
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.name} since it is larger than "
                f"the high watermark {self.high_watermark}",
            )
        return max(offset, self.log.log_start_offset)

    def delete_records(self, offset: int) -> int:
        """Move the log start up to `offset`; the new log start."""
        self.log.advance_log_start(self.deletion_point(offset))
        return self.log.log_start_offset

    # --- reading

    @property
    def last_stable_offset(self) -> int:
        unstable = self.log.producers.first_unstable_offset()
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        at_least_one: bool = True,
    ) -> Fetch:
        """What a consumer may read from `offset` on. Raises FENCED/UNKNOWN_LEADER_EPOCH, OFFSET_OUT_OF_RANGE."""
        if current_leader_epoch != NO_EPOCH:
            self.check_epoch(current_leader_epoch)
        log = self.log
        stable = self.last_stable_offset
        if last_fetched_epoch != NO_EPOCH:
            diverging = self._diverging(offset, last_fetched_epoch)
            if diverging is not None:
                return Fetch(None, self.high_watermark, stable, log.log_start_offset, [], diverging)
        limit = stable if isolation == READ_COMMITTED else self.high_watermark
        aborted: list[tuple[int, int]] = []
        try:
            fetched = log.read(offset, max_bytes, max_offset=limit, at_least_one=at_least_one)
            if isolation == READ_COMMITTED and fetched.slice is not None:
                aborted = log.aborted(offset, fetched.end_offset)
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        return _new(Fetch, (fetched.slice, self.high_watermark, stable, log.log_start_offset, aborted, None))

    def _diverging(self, offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """Where our history ends for the reader's last epoch, if that is before what it has already read (KIP-595)."""
        epoch, end = self.epoch_end_offset(last_fetched_epoch)
        if epoch == NO_EPOCH:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Could not determine the end offset of the last fetched epoch {last_fetched_epoch} of {self.name}",
            )
        return (epoch, end) if epoch < last_fetched_epoch or end < offset else None

    def list_offset(
        self,
        timestamp: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        current_leader_epoch: int = NO_EPOCH,
    ) -> TimeOffset | None:
        """The offset of a moment, or of one of the special ones; None if there is no such record."""
        if current_leader_epoch != NO_EPOCH:
            self.check_epoch(current_leader_epoch)
        log = self.log
        limit = self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark
        if timestamp == LATEST:
            return TimeOffset(limit, _NO_TIME, self.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return TimeOffset(log.log_start_offset, _NO_TIME, self._first_epoch())
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return TimeOffset(-1, _NO_TIME, NO_EPOCH)  # nothing is tiered
        if timestamp < MAX_TIMESTAMP:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown special timestamp {timestamp}")
        try:
            if timestamp == MAX_TIMESTAMP:
                return log.max_timestamp_offset(max_offset=limit)
            return log.offset_for_time(timestamp, max_offset=limit)
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def epoch_end_offset(self, leader_epoch: int, *, current_leader_epoch: int = NO_EPOCH) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch at or below `leader_epoch`; (-1, -1) if unknown."""
        if current_leader_epoch != NO_EPOCH:
            self.check_epoch(current_leader_epoch)
        latest = self.log.epochs.latest
        if latest < leader_epoch <= self.leader_epoch:
            # An epoch begins, for whoever asks, when its leader does, even if it has not written anything yet.
            known = leader_epoch == self.leader_epoch or latest == NO_EPOCH
            return leader_epoch if known else latest, self.log.next_offset
        return self.log.epoch_end(leader_epoch)

    def _first_epoch(self) -> int:
        """The epoch of the first record, or of the one that will be."""
        log = self.log
        epoch = log.epochs.epoch_at(log.log_start_offset)
        return self.leader_epoch if epoch == NO_EPOCH and log.log_start_offset == log.next_offset else epoch

    def check_epoch(self, leader_epoch: int) -> None:
        if leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        if leader_epoch > self.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    def __repr__(self) -> str:
        return f"Partition({self.name}, {self.log.log_start_offset}..{self.log.next_offset})"
