"""Committing offsets: by members, by clients outside an empty group, and as part of a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.group import Committer
from ottla.groups.offsets.entries import entry_of
from ottla.groups.offsets.store import NO_EXPIRY, CommittedOffset
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import (
    NO_ID,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    LeaderEpoch,
    ProducerEpoch,
    ProducerId,
    TopicPartition,
)
from ottla.model.limits import INT64_MAX
from ottla.model.settings.groups import OFFSET_METADATA_MAX_BYTES

DEFAULT_RETENTION = -1
# Clients with an older OffsetCommit do not know the error GROUP_ID_NOT_FOUND.
_NOT_FOUND_SINCE = 9


class NewOffset(NamedTuple):
    """An offset to commit for one partition."""

    partition: TopicPartition
    offset: int
    leader_epoch: LeaderEpoch
    metadata: str | None
    topic_id: bytes = NO_ID


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Replies with an ErrorCode for each of `offsets`, in their order. Refuses all of them if the committer may not
    commit.
    """

    group_id: str
    by: Committer
    offsets: tuple[NewOffset, ...]
    retention_ms: int = DEFAULT_RETENTION  # only old clients set it; otherwise the broker's setting counts
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, list[ErrorCode]]:
        self._check_committer(view)
        expires_at_ms = NO_EXPIRY
        if self.retention_ms != DEFAULT_RETENTION:
            expires_at_ms = min(now_ms + self.retention_ms, INT64_MAX)
        metadata_max = view.setting(OFFSET_METADATA_MAX_BYTES)
        codes: list[ErrorCode] = []
        records: list[Entry] = []
        for new in self.offsets:
            if new.metadata is not None and len(new.metadata) > metadata_max:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            codes.append(ErrorCode.NONE)
            committed = CommittedOffset(
                new.offset, new.leader_epoch, new.metadata or "", now_ms, expires_at_ms, new.topic_id
            )
            records.append(entry_of(self.group_id, new.partition, committed, self.producer_id, self.producer_epoch))
        return Result(records, codes)

    def _check_committer(self, view: GroupsView) -> None:
        group = view.state.groups.get(self.group_id)
        if group is None:
            if self.by.epoch >= 0:
                known = self.by.request_version >= _NOT_FOUND_SINCE and not self.by.transactional
                raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION)
            return
        try:
            group.check_commit(
                self.by._replace(
                    partitions=lambda: self._partitions(view), places=lambda: [new.partition for new in self.offsets]
                )
            )
        except ApiError as error:
            if self.by.transactional and error.code == ErrorCode.STALE_MEMBER_EPOCH:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION) from error
            raise

    def _partitions(self, view: GroupsView) -> list[tuple[bytes, int]]:
        """Return the partitions by topic id, looked up if the request has none. A deleted topic gets NO_ID, which no
        member owns.
        """
        found: list[tuple[bytes, int]] = []
        for new in self.offsets:
            topic_id = new.topic_id
            if topic_id == NO_ID and (info := view.topics.by_name(new.partition.topic)) is not None:
                topic_id = info.id
            found.append((topic_id, new.partition.partition))
        return found
