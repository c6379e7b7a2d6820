"""ShareGroup and its members; only `apply` and `note` of the machine change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions
from ottla.groups.find import find_group
from ottla.groups.group import Committer, GroupKind
from ottla.groups.modern.group import ModernGroup
from ottla.groups.share import entries
from ottla.groups.share.member import ShareMember, StatePartitions
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.model.errors import ApiError, ErrorCode


@dataclass(slots=True)
class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """One group. `initializing_since` is soft state: after loading, initialisations that have not finished are
    requested again.
    """

    state_partitions: StatePartitions | None = None
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
        """Always allowed: there are no offsets to read."""

    def check_delete_offsets(self) -> None:
        raise self._no_offsets()

    def _no_offsets(self) -> ApiError:
        return ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def offsets_expire_since(self) -> int | None:
        return None

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NO_PARTITIONS)

    def tombstones(self) -> Sequence[Entry]:
        return [
            *entries.RECORDS.tombstones(self.group_id, self.members),
            entries.state_partitions_tombstone(self.group_id),
            entries.group_tombstone(self.group_id),
        ]


def find(view: GroupsView, group_id: str) -> ShareGroup:
    """Return the share group; raises GROUP_ID_NOT_FOUND for other kinds."""
    return find_group(view, group_id, ShareGroup, GroupKind.SHARE)


def find_or_begin(view: GroupsView, group_id: str) -> ShareGroup:
    """Return the share group, or a new one that exists once its first record is applied."""
    return find(view, group_id) if group_id in view.state.groups else ShareGroup(group_id)
