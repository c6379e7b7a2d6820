"""One producer id in one partition: its last batches, its open transaction, and its state at the newest mark."""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.producers.snapshot import SnapshotEntry
from ottla.model.ids import NO_PRODUCER_EPOCH, ProducerEpoch, ProducerId


class WrittenBatch(NamedTuple):
    """One of the last batches of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerBefore(NamedTuple):
    """The state of a producer at a mark (see `marks`)."""

    epoch: ProducerEpoch
    coordinator_epoch: int
    last_timestamp: int
    txn_first_offset: int
    written_at: int
    batches: tuple[WrittenBatch, ...]


class ProducersMark:
    """An offset to which the producers can be taken back: the former states of the producers that wrote since."""

    __slots__ = ("before", "due", "offset")

    def __init__(self, offset: int, due: int) -> None:
        self.offset = offset
        self.due = due
        self.before: dict[ProducerId, ProducerBefore | None] = {}  # None: the producer was unknown


class ProducerEntry:
    """The state of one producer id in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "kept_at",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
        "written_at",
    )

    def __init__(self, producer_id: ProducerId, epoch: ProducerEpoch = NO_PRODUCER_EPOCH) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = -1  # -1: no open transaction
        self.written_at = -1  # the offset of its last batch or marker
        self.batches: list[WrittenBatch] = []
        self.kept_at: ProducersMark | None = None  # the newest mark that has the state before it

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def snapshot(self) -> SnapshotEntry:
        last = self.batches[-1] if self.batches else None
        return SnapshotEntry(
            self.producer_id,
            self.epoch,
            last.last_sequence if last else -1,
            last.last_offset if last else -1,
            last.last_offset - last.first_offset if last else 0,
            self.last_timestamp,
            self.coordinator_epoch,
            self.txn_first_offset,
        )
