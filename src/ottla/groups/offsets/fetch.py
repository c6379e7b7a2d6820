"""Asking how far a group has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.view import View
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition


class FetchedOffset(NamedTuple):
    """The committed offset of one partition; -1 if there is none."""

    partition: TopicPartition
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """Replies with a FetchedOffset for each of `partitions`; None: for all that have one."""

    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    member_id: str | None = None
    member_epoch: int = -1
    require_stable: bool = False

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        group = view.state.groups.get(self.group_id)
        if group is not None:
            group.check_fetch(self.member_id, self.member_epoch)
        kept = view.state.offsets.of(self.group_id) if group is not None else {}
        found: list[FetchedOffset] = []
        for partition in kept if self.partitions is None else self.partitions:
            committed = kept.get(partition)
            if self.require_stable and view.state.offsets.is_pending(self.group_id, partition):
                found.append(FetchedOffset(partition, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif committed is None:
                found.append(FetchedOffset(partition))
            else:
                found.append(FetchedOffset(partition, committed.offset, committed.leader_epoch, committed.metadata))
        return Result(reply=found)
