"""ModernGroup: the common state of consumer, share and streams groups; only `apply` and `note` change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from ottla.groups.group import GroupKind
from ottla.model.errors import ApiError, ErrorCode

JOIN_EPOCH = 0  # in a heartbeat: the member joins
LEAVE_EPOCH = -1  # in a heartbeat: the member leaves
STATIC_LEAVE_EPOCH = -2  # a static member has left, but is expected back within the session timeout
NO_EPOCH = -1  # a member's epoch that is not known


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


MemberT = TypeVar("MemberT", bound=ModernMember)
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
    def kind(self) -> GroupKind:
        raise NotImplementedError

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

    def member(self, member_id: str) -> MemberT:
        """Return the member; raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def check_size(self, members_max: int) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if no member may join."""
        if len(self.members) >= members_max:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The {self.kind.value} group has reached its maximum capacity of {members_max} members.",
            )

    def check_delete(self) -> None:
        """Raise NON_EMPTY_GROUP if the group has members."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

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
