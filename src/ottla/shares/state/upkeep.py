"""Periodic work of the share coordinator: snapshots of idle partitions, pruning; and deletion with topics.

`__share_group_state` is not compacted. A share partition's snapshot makes its older records redundant, but the journal
can only be pruned up to the oldest snapshot that is still needed: one idle partition would keep everything. So idle
partitions get a new snapshot from time to time, unless no partition has changed since such a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.model import limits
from ottla.model.settings.share import (
    SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS,
    SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS,
)
from ottla.shares.state.commands import tombstone
from ottla.shares.state.partition import SharePartitionId, SharePartitionState
from ottla.shares.state.view import ShareStatesView

_COLD_INTERVAL = SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS
_RECORD_BYTES, _RANGE_BYTES = 128, 20  # estimated bytes of a record, and of each range of offsets in it
_PRUNE_INTERVAL = SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS


@dataclass(frozen=True, slots=True)
class PruneBelow:
    """An effect: the journal's records below `offset` may be deleted."""

    offset: int


@dataclass(frozen=True, slots=True)
class SnapshotCold:
    """Write snapshots of partitions without a recent one."""

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
        interval_ms = view.setting(_COLD_INTERVAL)
        timers = (Timer("cold", now_ms + interval_ms, SnapshotCold()),)
        partitions = view.state.partitions
        if all(state.created_ms != state.written_ms for state in partitions.values()):
            return Result(timers=timers)
        cold = (id for id, state in partitions.items() if now_ms - state.written_ms >= interval_ms)
        portion, is_all = _portion(view, cold)
        records = [_again(id, partitions[id], now_ms) for id in portion]
        return Result(records, timers=timers if is_all else (Timer("cold", now_ms, SnapshotCold()),))


@dataclass(frozen=True, slots=True)
class Prune:
    """Prune the journal up to the oldest record that is still needed."""

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
        timers = (Timer("prune", now_ms + view.setting(_PRUNE_INTERVAL), Prune()),)
        needed_from = view.state.needed_from
        return Result(timers=timers, effects=(PruneBelow(needed_from),) if needed_from > 0 else ())


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Delete the state of share partitions whose topics were deleted."""

    topic_ids: frozenset[bytes]

    def decide(self, view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
        gone = (id for id in view.state.partitions if id.topic_id in self.topic_ids)
        portion, is_all = _portion(view, gone)
        timers = () if is_all else (Timer(("deleted", self.topic_ids), now_ms, self),)
        return Result([tombstone(id) for id in portion], timers=timers)


def begin(view: ShareStatesView, now_ms: int) -> Result[Entry, None]:
    """Start the timers after loading, and delete the state of topics that were deleted meanwhile."""
    topic_ids = {id.topic_id for id in view.state.partitions}
    gone = frozenset(topic_id for topic_id in topic_ids if view.partitions_of(topic_id) == 0)
    deletions = TopicsDeleted(gone).decide(view, now_ms)
    return Result(
        deletions.records,
        timers=(
            *deletions.timers,
            Timer("cold", now_ms + view.setting(_COLD_INTERVAL), SnapshotCold()),
            Timer("prune", now_ms + view.setting(_PRUNE_INTERVAL), Prune()),
        ),
    )


def _again(id: SharePartitionId, state: SharePartitionState, now_ms: int) -> Entry:
    """Return a snapshot of the unchanged state."""
    return replace(state, snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms).snapshot(id)


def _portion(view: ShareStatesView, ids: Iterable[SharePartitionId]) -> tuple[list[SharePartitionId], bool]:
    """Return as many ids as may be written at once, and whether these are all."""
    size_bytes = 0
    portion: list[SharePartitionId] = []
    for id in ids:
        size_bytes += _RECORD_BYTES + len(id.group_id) + _RANGE_BYTES * len(view.state.partitions[id].batches)
        if portion and size_bytes > limits.JOURNAL_PORTION_BYTES:
            return portion, False
        portion.append(id)
    return portion, True
