"""ShareGroup and its members; only `apply` and `note` of the machine change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions
from ottla.groups.find import find_group
from ottla.groups.group import Committer, GroupKind
from ottla.groups.modern.group import MemberState, ModernGroup
from ottla.groups.share import entries
from ottla.groups.view import View
from ottla.machine.keyed import Entry
from ottla.model.errors import ApiError, ErrorCode

JOINING = 0  # the epoch a member begins with
LEAVING = -1
NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class ShareMember:
    """`epoch` is that of the target it has; a heartbeat with the one before is a repetition, others are fenced."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    epoch: int = JOINING
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=lambda: NO_PARTITIONS)

    @property
    def instance_id(self) -> str | None:
        """Share groups know no static members."""
        return None


class TopicShares(NamedTuple):
    """Partitions of one topic."""

    name: str
    partitions: frozenset[int]


BookSide = Mapping[bytes, TopicShares]  # by the topic's id
NO_TOPICS: BookSide = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StateBook:
    """Of which partitions the share coordinator is being asked to begin, has begun, or shall forget the state."""

    initializing: BookSide = field(default_factory=lambda: NO_TOPICS)
    initialized: BookSide = field(default_factory=lambda: NO_TOPICS)
    deleting: frozenset[bytes] = frozenset()


@dataclass(slots=True)
class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """One group. `initializing_since` is soft: after loading, what is still being initialised is asked for anew."""

    book: StateBook | None = None
    initializing_since: dict[bytes, int] = field(default_factory=dict)

    @property
    def kind(self) -> GroupKind:
        return GroupKind.SHARE

    @property
    def protocol_type(self) -> str:
        return "share"

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    def check_commit(self, by: Committer) -> None:
        raise self._no_offsets()

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may find that there are none."""

    def check_delete_offsets(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> ApiError:
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def offsets_expire_since(self) -> int | None:
        return None

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NO_PARTITIONS)

    def tombstones(self) -> Sequence[Entry]:
        members = tuple(self.members)
        return [
            *(entries.no_current(self.group_id, member_id) for member_id in members),
            *(entries.no_target(self.group_id, member_id) for member_id in members),
            entries.no_targets(self.group_id),
            *(entries.no_member(self.group_id, member_id) for member_id in members),
            entries.no_book(self.group_id),
            entries.no_group(self.group_id),
        ]


def find(view: View, group_id: str) -> ShareGroup:
    """The group; refuses others than share groups."""
    return find_group(view, group_id, ShareGroup, GroupKind.SHARE)


def find_or_begin(view: View, group_id: str) -> ShareGroup:
    """The group, or a new one that exists once a record says so."""
    return find(view, group_id) if group_id in view.state.groups else ShareGroup(group_id)
