"""ReconciledGroup: the common rules of consumer and streams groups, in which a partition (task) is revoked from one
member before another gets it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ottla.groups.group import SINCE_COMMIT, Committer
from ottla.groups.modern.group import MemberState, ModernGroup, ModernMember, TargetT
from ottla.model.errors import ApiError, ErrorCode

_OFFSET_COMMIT_BY_EPOCH = 9  # the first version of OffsetCommit whose clients know STALE_MEMBER_EPOCH


class ReconciledMember(ModernMember, Protocol):
    """A member that has to confirm revocations."""

    @property
    def state(self) -> MemberState: ...

    @property
    def rebalance_timeout_ms(self) -> int: ...

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it uses JoinGroup and SyncGroup, so its epoch is a generation to it."""
        ...

    def is_reconciled_to(self, assignment_epoch: int) -> bool: ...


ReconciledMemberT = TypeVar("ReconciledMemberT", bound=ReconciledMember)


@dataclass(slots=True)
class ReconciledGroup(ModernGroup[ReconciledMemberT, TargetT]):
    """One group, with the answers to what any kind of group is asked (`groups/group.py`)."""

    @property
    def state_name(self) -> str:
        return self.reconciliation_state()

    def reconciliation_state(self) -> str:
        """Return Kafka's name of the state of the members' reconciliation."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def owned_since(self, member: ReconciledMemberT, by: Committer) -> Iterable[int | None]:
        """Return, for each partition of a commit, the epoch in which the member got it; None if it does not own it."""
        raise NotImplementedError

    def check_commit(self, by: Committer) -> None:
        """Accept a commit with an older epoch for partitions that the member has owned since that epoch."""
        if self._commits_from_outside(by):
            return
        member = self.member(by.member_id)
        speaks_epochs = by.transactional or member.uses_classic_protocol
        if not speaks_epochs and by.request_version < _OFFSET_COMMIT_BY_EPOCH:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if by.epoch == member.epoch:
            return
        if by.epoch > member.epoch or any(since is None or by.epoch < since for since in self.owned_since(member, by)):
            raise _stale(member)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise _stale(member)

    def check_delete_offsets(self) -> None:
        """Always allowed: the group knows which topics its members read."""

    def offsets_expire_since(self) -> int | None:
        return SINCE_COMMIT

    def _commits_from_outside(self, by: Committer) -> bool:
        """Whether a commit comes from outside the group: allowed while the group has no members, and in
        transactions.
        """
        if by.epoch < 0 and not self.members:
            return True
        return by.transactional and by.epoch == -1 and not by.member_id and by.instance_id is None


def _stale(member: ReconciledMember) -> ApiError:
    return ApiError(ErrorCode.ILLEGAL_GENERATION if member.uses_classic_protocol else ErrorCode.STALE_MEMBER_EPOCH)
