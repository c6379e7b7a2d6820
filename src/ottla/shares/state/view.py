"""ShareStatesView: what a command of the share coordinator may read while it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.setting import Setting
from ottla.shares.state.partition import SharePartitionId, SharePartitionState

T = TypeVar("T")


class SharesState:
    """All share partitions of one partition of `__share_group_state`; only `apply` of the machine changes it."""

    __slots__ = ("journal_end", "partitions")

    def __init__(self, journal_start: int = 0) -> None:
        self.partitions: dict[SharePartitionId, SharePartitionState] = {}
        self.journal_end = journal_start  # one after the last applied record

    @property
    def needed_from(self) -> int:
        """The offset below which the journal's records are not needed any more."""
        return min((state.snapshot_at for state in self.partitions.values()), default=self.journal_end)


@dataclass(frozen=True, slots=True)
class ShareStatesView:
    """The state, the partition counts of topics by id (0: no such topic), and the broker's present settings."""

    state: SharesState
    partitions_of: Callable[[bytes], int]
    broker: Callable[[], Config]

    def setting(self, setting: Setting[T]) -> T:
        return self.broker()[setting]

    def known(self, id: SharePartitionId, operation: str) -> SharePartitionState:
        """Return the partition's state; refuses partitions that were not initialised."""
        state = self.state.partitions.get(id)
        if state is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{operation} operation on uninitialized share partition not allowed."
            )
        return state

    def check_partition(self, id: SharePartitionId) -> None:
        """Refuse negative partition numbers."""
        if id.partition < 0:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")

    def check_exists(self, id: SharePartitionId) -> None:
        """Refuse partitions that do not exist (any more)."""
        if self.partitions_of(id.topic_id) <= id.partition:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)
