"""FetchOffsets: read the committed offsets of a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.offsets.store import CommittedOffset
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, TopicPartition


class FetchedOffset(NamedTuple):
    """The committed offset of one partition; -1 if there is none."""

    partition: TopicPartition
    offset: int = -1
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchedOffsets:
    """A snapshot of a group's offsets."""

    kept: Mapping[TopicPartition, CommittedOffset]
    unstable: frozenset[TopicPartition]  # partitions that a transaction in progress commits offsets for

    def of(self, partition: TopicPartition) -> FetchedOffset:
        if partition in self.unstable:
            return FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        committed = self.kept.get(partition)
        if committed is None:
            return FetchedOffset(partition)
        return FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata)


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """Replies with the FetchedOffsets of `partitions`, which are few; None: of all partitions."""

    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, FetchedOffsets]:
        group = view.state.groups.get(self.group_id)
        if group is not None:
            group.check_fetch(self.member_id, self.member_epoch)
        offsets = view.state.offsets
        kept = offsets.of(self.group_id) if group is not None else {}
        unstable: Iterable[TopicPartition] = ()
        if self.partitions is None:
            kept = dict(kept)
            if self.require_stable:
                unstable = offsets.pending(self.group_id)
        else:
            kept = {each: kept[each] for each in self.partitions if each in kept}
            if self.require_stable:
                unstable = (each for each in self.partitions if offsets.is_pending(self.group_id, each))
        return Result(reply=FetchedOffsets(kept, frozenset(unstable)))
