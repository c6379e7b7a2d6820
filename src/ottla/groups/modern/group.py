"""ModernGroup: the common state of consumer, share and streams groups; only `apply` and `note` change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from ottla.groups.group import Committer


class MemberState(IntEnum):
    """How far a member's reconciliation has come, by the numbers in Kafka's records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to revoke partitions and has not confirmed it yet
    UNRELEASED_PARTITIONS = 2  # other members still own partitions of its target
    UNKNOWN = 127


class ModernMember(Protocol):
    """The common properties of members of all kinds. Members are immutable; `apply` replaces them."""

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def rack_id(self) -> str | None: ...

    @property
    def epoch(self) -> int:
        """The epoch of the target assignment it has reached."""
        ...

    @property
    def subscribed_topics(self) -> frozenset[str]: ...


class ReconciledMember(ModernMember, Protocol):
    """A member of a kind of group in which partitions are revoked from one member before another gets them."""

    def is_reconciled_to(self, assignment_epoch: int) -> bool: ...


MemberT = TypeVar("MemberT", bound=ModernMember)
ReconciledMemberT = TypeVar("ReconciledMemberT", bound=ReconciledMember)
TargetT = TypeVar("TargetT")


@dataclass(slots=True)
class ModernGroup(Generic[MemberT, TargetT]):
    """One group. `epoch` is the present one, `assignment_epoch` the one that `targets` were computed for."""

    group_id: str
    epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assigned_ms: int = 0  # when the targets were computed; 0: never, or by a coordinator that does not store it
    members: dict[str, MemberT] = field(default_factory=dict)
    targets: dict[str, TargetT] = field(default_factory=dict)
    # Soft state: the topics may have changed since `metadata_hash` was computed; also True after loading.
    metadata_stale: bool = True
    _names: frozenset[str] | None = None  # the last result of `subscribed_names`

    @property
    def is_empty(self) -> bool:
        return not self.members

    def subscribed_names(self) -> frozenset[str]:
        """Return all topics that any member reads."""
        if self._names is None:
            self._names = self.names_with(self.members)
        return self._names

    def names_with(self, members: Mapping[str, MemberT]) -> frozenset[str]:
        """Return the topics that these members would read together."""
        # Most members read the same topics, so few of these sets differ.
        return frozenset().union(*{member.subscribed_topics for member in members.values()})

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.subscribed_names()

    def heeds(self, names: frozenset[str]) -> bool:
        """Whether changes of these topics may affect the group."""
        return not names.isdisjoint(self.subscribed_names())

    # --- for `apply` and `note`

    def mark_stale(self) -> None:
        """Note that topics which affect the group have changed."""
        self.metadata_stale = True

    def put_member(self, member: MemberT) -> None:
        self.members[member.member_id] = member
        self._names = None

    def drop_member(self, member_id: str) -> None:
        self.members.pop(member_id, None)
        self._names = None


def reconciliation_state(group: ModernGroup[ReconciledMemberT, TargetT]) -> str:
    """Return the name of the state of a consumer or streams group, as in Kafka."""
    if not group.members:
        return "Empty"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    if all(member.is_reconciled_to(group.assignment_epoch) for member in group.members.values()):
        return "Stable"
    return "Reconciling"


def commits_from_outside(group: ModernGroup[MemberT, TargetT], by: Committer) -> bool:
    """Whether a commit comes from outside the group: allowed while the group has no members, and in transactions."""
    if by.epoch < 0 and not group.members:
        return True
    return by.transactional and by.epoch == -1 and not by.member_id and by.instance_id is None
