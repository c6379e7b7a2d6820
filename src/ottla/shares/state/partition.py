"""The stored state of one share partition: one group's progress in one partition of one topic."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.machine.keyed import Entry
from ottla.model.ids import LeaderEpoch, uuid_bytes, uuid_text
from ottla.shares.state.batches import NO_OFFSET, StateBatch, combine, combine_into
from ottla.wire.journal.share_state import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateValue

NO_EPOCH = -1  # in a request: the sender does not know the epoch, so it is not checked
NO_COUNT = -1  # as a count of delivered records: unknown
_INT = re.compile(r"[+-]?[0-9]+")


class SharePartitionId(NamedTuple):
    """A group and a partition."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key that FindCoordinator hashes to find the coordinator."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


def is_coordinator_key(key: str) -> bool:
    """Return whether a key of FindCoordinator is `group:topic id:partition`; only the group may contain colons."""
    group_id, *rest = key.rstrip(":").rsplit(":", 2)
    if len(rest) != 2 or not group_id.strip():
        return False
    try:
        uuid_bytes(rest[0])
    except ValueError:
        return False
    return _INT.fullmatch(rest[1]) is not None and -(2**31) <= int(rest[1]) < 2**31


@dataclass(frozen=True, slots=True)
class SharePartitionState:
    """The state. `highest_…` are the greatest epochs ever seen, which fence requests; the others are those of the last
    record.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    created_ms: int
    written_ms: int
    highest_state_epoch: int
    highest_leader_epoch: LeaderEpoch
    updates: int = 0  # since the snapshot
    snapshot_at: int = 0  # the snapshot's offset in the journal: the journal is needed from there on

    def updated(self, value: ShareUpdateValue) -> SharePartitionState:
        """Return the state after an update. Updates do not carry the state epoch: only a snapshot changes it."""
        start_offset = self.start_offset if value.start_offset == NO_OFFSET else value.start_offset
        return replace(
            self,
            leader_epoch=self.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=combine_into(self.batches, batches_of(value), start_offset),
            highest_leader_epoch=max(self.highest_leader_epoch, value.leader_epoch),
            updates=self.updates + 1,
        )

    def snapshot(self, id: SharePartitionId) -> Entry:
        """Return the record with the whole state."""
        value = ShareSnapshotValue(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            create_timestamp=self.created_ms,
            write_timestamp=self.written_ms,
            state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in self.batches],
        )
        return Entry(ShareSnapshotKey(**id._asdict()), value)


def of_snapshot(value: ShareSnapshotValue, before: SharePartitionState | None, at: int) -> SharePartitionState:
    """Return the state of a snapshot; of the state before only the highest epochs are kept."""
    return SharePartitionState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=combine(batches_of(value), value.start_offset),  # another implementation may have written it
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
        highest_state_epoch=max(before.highest_state_epoch, value.state_epoch) if before else value.state_epoch,
        highest_leader_epoch=max(before.highest_leader_epoch, value.leader_epoch) if before else value.leader_epoch,
        snapshot_at=at,
    )


def batches_of(value: ShareSnapshotValue | ShareUpdateValue) -> tuple[StateBatch, ...]:
    """Return the ranges of a record."""
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in value.state_batches
    )
