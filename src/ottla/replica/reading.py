"""Readable: the reading side of a replica — what consumers, followers and ListOffsets may see.

A follower serves clients that know of fetching from followers (KIP-392), up to the high watermark its leader told it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ottla.log.files.disk import FileSlice, StorageError, in_a_hurry
from ottla.log.log import Log
from ottla.log.lookup import TimeOffset, TimeSearch
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, ProducerId, TopicPartition
from ottla.model.limits import ABORTED_PER_FETCH_MAX

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
# Isolation of replicas: they read up to the end of the log.
TO_THE_END = -1


LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# In DeleteRecords: delete up to the high watermark.
HIGH_WATERMARK = -1
_NO_TIME = -1
_new = tuple.__new__


class PartitionFetch(NamedTuple):
    """One partition's part of a fetch answer."""

    records: FileSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[ProducerId, int]]
    diverging: tuple[LeaderEpoch, int] | None  # (epoch, end offset) where the reader's log diverges from this one


class Readable:
    __slots__ = (
        "epoch_start",
        "fetch_requests",
        "high_watermark",
        "index",
        "is_leader",
        "leader_epoch",
        "log",
        "produce_requests",
        "received_bytes",
        "received_records",
        "sent_bytes",
        "topic",
    )

    def __init__(self, topic: str, index: int, log: Log) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
        self.is_leader = False
        self.epoch_start = -1  # where the log ended when this node began to lead
        self.high_watermark = log.log_start_offset
        self.received_bytes = 0  # bytes of records from producers since the partition was opened
        self.received_records = 0  # the number of these records
        self.produce_requests = 0  # those whose records were appended
        self.fetch_requests = 0  # those of consumers that read records
        self.sent_bytes = 0  # bytes sent to consumers since the partition was opened

    def require_leader(self) -> None:
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

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
        current_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
        last_fetched_epoch: LeaderEpoch = NO_LEADER_EPOCH,
        at_least_one: bool = True,
        only_leader: bool = True,
        aborted_max: int = ABORTED_PER_FETCH_MAX,
        patient: bool = True,
    ) -> PartitionFetch:
        """Read for a consumer from `offset` on; unless `only_leader`, a follower answers, too (KIP-392).

        Raises FENCED/UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE; and Cold, unless `patient`,
        where it would have to wait for the disk.
        """
        if current_leader_epoch != NO_LEADER_EPOCH:
            self.check_epoch(current_leader_epoch)
        if only_leader and not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        stable = self.last_stable_offset
        if last_fetched_epoch != NO_LEADER_EPOCH:
            diverging = self._diverging(offset, last_fetched_epoch)
            if diverging is not None:
                return PartitionFetch(None, self.high_watermark, stable, log.log_start_offset, [], diverging)
        limit = stable if isolation == READ_COMMITTED else self.high_watermark
        aborted: list[tuple[ProducerId, int]] = []
        hurries = not patient and offset < log.active.recent_start
        if hurries:
            log.directory.disk.hurry()
        try:
            if isolation == READ_COMMITTED:
                fetched, txns = log.read_committed(
                    offset, max_bytes, max_offset=limit, at_least_one=at_least_one, aborted_max=aborted_max
                )
                aborted = [(txn.producer_id, txn.first_offset) for txn in txns]
            else:
                fetched = log.read(offset, max_bytes, max_offset=limit, at_least_one=at_least_one)
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        finally:
            if hurries:
                log.directory.disk.relax()
        return _new(PartitionFetch, (fetched.slice, self.high_watermark, stable, log.log_start_offset, aborted, None))

    def _diverging(self, offset: int, last_fetched_epoch: LeaderEpoch) -> tuple[LeaderEpoch, int] | None:
        """Return the end of the reader's last epoch in this log, if the reader has read beyond it (KIP-595)."""
        epoch, end = self._epoch_end(last_fetched_epoch)
        if epoch == NO_LEADER_EPOCH or offset < self.log.log_start_offset:
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
        current_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
        only_leader: bool = True,
        search: Callable[[TimeSearch], TimeOffset | None] = TimeSearch.whole,
    ) -> TimeOffset | None:
        """Return the offset for a timestamp, or for a special one such as LATEST; None if there is no such record.
        `search` runs the search where records must be read.

        A new leader whose high watermark has not reached the beginning of its epoch raises OFFSET_NOT_AVAILABLE, rather
        than answer with an offset lower than one that clients were told before.
        """
        if current_leader_epoch != NO_LEADER_EPOCH:
            self.check_epoch(current_leader_epoch)
        if only_leader:
            self.require_leader()
        log = self.log
        limit = self._limit(isolation)
        if timestamp == LATEST:
            self._check_offsets_known(isolation)
            return TimeOffset(limit, _NO_TIME, self.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return TimeOffset(log.log_start_offset, _NO_TIME, self._first_epoch())
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return TimeOffset(-1, _NO_TIME, NO_LEADER_EPOCH)  # nothing is tiered
        if timestamp < MAX_TIMESTAMP:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown special timestamp {timestamp}")
        try:
            found = search(log.time_search(None if timestamp == MAX_TIMESTAMP else timestamp))
            if found is not None and found.offset >= limit:
                found = None
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if found is None:
            self._check_offsets_known(isolation)
        return found

    def unread_since(self, offset: int) -> int | None:
        """Return when the first record at or above `offset` was written, to within its batch; None if there is none
        that consumers can read. Raises Cold, StorageError.
        """
        start = max(offset, self.log.log_start_offset)
        if start >= self.high_watermark:
            return None
        with in_a_hurry(self.log.directory):
            return self.log.written_ms(start, self.high_watermark)

    def _limit(self, isolation: int) -> int:
        if isolation == TO_THE_END:
            return self.log.written_offset
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark

    def _check_offsets_known(self, isolation: int) -> None:
        if self.high_watermark < self.epoch_start and isolation != TO_THE_END:
            raise ApiError(
                ErrorCode.OFFSET_NOT_AVAILABLE,
                f"Failed to fetch offsets for {self.name} with leader epoch {self.leader_epoch} as this partition's "
                f"high watermark ({self.high_watermark}) is lagging behind the start offset from the beginning of this "
                f"epoch ({self.epoch_start}).",
            )

    def epoch_end_offset(
        self, leader_epoch: LeaderEpoch, *, current_leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    ) -> tuple[LeaderEpoch, int]:
        """Return (epoch, end offset) of the largest epoch at or below `leader_epoch`; (-1, -1) if unknown."""
        if current_leader_epoch != NO_LEADER_EPOCH:
            self.check_epoch(current_leader_epoch)
        self.require_leader()
        return self._epoch_end(leader_epoch)

    def _epoch_end(self, leader_epoch: LeaderEpoch) -> tuple[LeaderEpoch, int]:
        latest, written = self.log.epochs.latest, self.log.written_offset
        if self.is_leader and latest < leader_epoch <= self.leader_epoch:
            # A leader's epoch counts as begun from its election on, even if nothing was written in it yet.
            known = leader_epoch == self.leader_epoch or latest == NO_LEADER_EPOCH
            return leader_epoch if known else latest, written
        epoch, end = self.log.epoch_end(leader_epoch)
        return epoch, min(end, written)

    def cut_point(self, epoch: LeaderEpoch, end_offset: int) -> int:
        """Return the offset where this log diverges from that of the leader, in which `epoch` ends at `end_offset`.

        If `epoch` is unknown here, this is one step of several: the leader's answer to the next fetch tells more.
        """
        known, end = self.log.epoch_end(epoch)
        if known == epoch:
            end = min(end, end_offset)
        elif known == NO_LEADER_EPOCH:
            end = end_offset
        return min(end, self.log.next_offset)

    def deletion_point(self, offset: int) -> int:
        """Return the log start that `delete_records` would set (-1: at the high watermark), or raise why it may not."""
        self.require_leader()
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

    def _first_epoch(self) -> LeaderEpoch:
        """Return the epoch of the first record; in an empty log that of the next record."""
        log = self.log
        epoch = log.epochs.epoch_at(log.log_start_offset)
        return self.leader_epoch if epoch == NO_LEADER_EPOCH and log.log_start_offset == log.next_offset else epoch

    def check_epoch(self, leader_epoch: LeaderEpoch) -> None:
        if leader_epoch < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        if leader_epoch > self.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.index)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"

    def __repr__(self) -> str:
        return f"Partition({self.name}, {self.log.log_start_offset}..{self.log.next_offset})"
