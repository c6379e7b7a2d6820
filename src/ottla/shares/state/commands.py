"""The commands of the share coordinator, from share-partition leaders and the group coordinator, for one share
partition each.

Two epochs fence: the leader epoch stops a leader that lost its partition, the state epoch stops a leader that does not
know yet that the state was initialised again (its offsets were altered). -1 in a request means: not checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH, LeaderEpoch
from ottla.model.settings.share import SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT
from ottla.shares.state.batches import NO_OFFSET, StateBatch, combine
from ottla.shares.state.partition import NO_COUNT, NO_EPOCH, SharePartitionId, SharePartitionState
from ottla.shares.state.view import ShareStatesView
from ottla.wire.journal.share_state import ShareSnapshotKey, ShareUpdateKey, ShareUpdateValue


class StoredShareState(NamedTuple):
    """The reply to ReadState."""

    state_epoch: int
    start_offset: int  # NO_OFFSET: to be decided by the leader, from the group's share.auto.offset.reset
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class Summary(NamedTuple):
    """The reply to ReadSummary."""

    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: int
    delivery_complete_count: int


@dataclass(frozen=True, slots=True)
class InitializeState:
    """Initialise (again) the state at `start_offset`, with nothing delivered. Replies with None."""

    group_id: str
    topic_id: bytes
    partition: int
    state_epoch: int
    start_offset: int = NO_OFFSET

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
        id = SharePartitionId(self.group_id, self.topic_id, self.partition)
        view.check_partition(id)
        before = view.state.partitions.get(id)
        if before is not None:
            _check_epoch(self.state_epoch, before.highest_state_epoch, ErrorCode.FENCED_STATE_EPOCH)
        view.check_exists(id)
        state = SharePartitionState(
            snapshot_epoch=before.snapshot_epoch + 1 if before is not None else 0,
            state_epoch=self.state_epoch,
            leader_epoch=FIRST_LEADER_EPOCH,
            start_offset=self.start_offset,
            delivery_complete_count=NO_COUNT if self.start_offset == NO_OFFSET else 0,
            batches=(),
            created_ms=now_ms,
            written_ms=now_ms,
            highest_state_epoch=self.state_epoch,
            highest_leader_epoch=FIRST_LEADER_EPOCH,
        )
        return Result([state.snapshot(id)])


@dataclass(frozen=True, slots=True)
class ReadState:
    """Read the state as a new leader, which fences the leaders before it. Replies with a StoredShareState."""

    group_id: str
    topic_id: bytes
    partition: int
    leader_epoch: LeaderEpoch

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, StoredShareState]:
        id = SharePartitionId(self.group_id, self.topic_id, self.partition)
        view.check_partition(id)
        state = view.known(id, "Read")
        _check_epoch(self.leader_epoch, state.highest_leader_epoch, ErrorCode.FENCED_LEADER_EPOCH)
        view.check_exists(id)
        reply = StoredShareState(state.state_epoch, state.start_offset, state.delivery_complete_count, state.batches)
        if self.leader_epoch in (NO_EPOCH, state.highest_leader_epoch):
            return Result(reply=reply)
        change = ShareStateChange(self.leader_epoch, state.start_offset, state.delivery_complete_count, ())
        return Result([_change(view, id, state, change, now_ms)], reply)


@dataclass(frozen=True, slots=True)
class WriteState:
    """Write the states of some records; `start_offset` NO_OFFSET keeps the start. Replies with None."""

    group_id: str
    topic_id: bytes
    partition: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
        id = SharePartitionId(self.group_id, self.topic_id, self.partition)
        view.check_partition(id)
        state = view.known(id, "Write")
        _check_epoch(self.leader_epoch, state.highest_leader_epoch, ErrorCode.FENCED_LEADER_EPOCH)
        _check_epoch(self.state_epoch, state.highest_state_epoch, ErrorCode.FENCED_STATE_EPOCH)
        view.check_exists(id)
        # Only a read announces a new leader, a write does not: so the epoch stays that of the last reader.
        change = ShareStateChange(state.leader_epoch, self.start_offset, self.delivery_complete_count, self.batches)
        return Result([_change(view, id, state, change, now_ms)])


@dataclass(frozen=True, slots=True)
class DeleteState:
    """Delete the state of a share partition, if there is one. Replies with None."""

    group_id: str
    topic_id: bytes
    partition: int

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
        id = SharePartitionId(self.group_id, self.topic_id, self.partition)
        view.check_partition(id)
        view.check_exists(id)
        return Result([tombstone(id)] if id in view.state.partitions else [])


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """Read the progress of the group, for admin clients. Replies with a Summary, even if the state was never
    initialised.
    """

    group_id: str
    topic_id: bytes
    partition: int

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, Summary]:
        id = SharePartitionId(self.group_id, self.topic_id, self.partition)
        view.check_partition(id)
        view.check_exists(id)
        state = view.state.partitions.get(id)
        if state is None:
            return Result(reply=Summary(0, FIRST_LEADER_EPOCH, NO_OFFSET, NO_COUNT))
        return Result(
            reply=Summary(state.state_epoch, state.leader_epoch, state.start_offset, state.delivery_complete_count)
        )


class ShareStateChange(NamedTuple):
    """The content of an update."""

    leader_epoch: LeaderEpoch
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


def tombstone(id: SharePartitionId) -> Entry:
    """Return the record that deletes a share partition's state."""
    return Entry(ShareSnapshotKey(**id._asdict()), None)


def _change(
    view: ShareStatesView, id: SharePartitionId, state: SharePartitionState, change: ShareStateChange, now_ms: int
) -> Entry:
    """Return an update or, after enough updates, a snapshot, so that the updates can be pruned."""
    assert change.leader_epoch >= state.leader_epoch, f"{id}: epoch {state.leader_epoch} → {change.leader_epoch}"
    batches = combine(change.batches, change.start_offset)
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.delivery_complete_count,
        state_batches=[ShareUpdateValue.StateBatch(**batch._asdict()) for batch in batches],
    )
    if state.updates < view.setting(SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT):
        return Entry(ShareUpdateKey(**id._asdict()), value)
    merged = state.updated(value)
    return replace(merged, snapshot_epoch=state.snapshot_epoch + 1, created_ms=now_ms, written_ms=now_ms).snapshot(id)


def _check_epoch(epoch: int, highest: int, code: ErrorCode) -> None:
    if epoch != NO_EPOCH and epoch < highest:
        raise ApiError(code, code.message)
