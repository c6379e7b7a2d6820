"""StreamsGroup: a topology, its members, their present and target tasks; only `apply` and `note` change it.

    Empty ──a member──▶ NotReady ──all topics are there──▶ Assigning ──▶ Reconciling ──▶ Stable

Deleted topics make it NotReady again; other changes lead back to Assigning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ottla.groups.find import find_group
from ottla.groups.group import SINCE_COMMIT, Committer, GroupKind
from ottla.groups.modern.group import ModernGroup, commits_from_outside, reconciliation_state
from ottla.groups.streams.configure import Configured
from ottla.groups.streams.entries import (
    AssignmentConfigs,
    GroupFacts,
    current_entry,
    group_entry,
    member_entry,
    target_entry,
    target_epoch_entry,
    topology_entry,
)
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import NOTHING, TaskId, TaskSet, each
from ottla.groups.streams.topology import Topology
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.model.errors import ApiError, ErrorCode

_OFFSET_COMMIT_BY_EPOCH = 9  # the first version of OffsetCommit whose clients know STALE_MEMBER_EPOCH


@dataclass(slots=True)
class StreamsGroup(ModernGroup[StreamsMember, TaskSet]):
    """One group. A member counts as owner of the tasks it revokes until it has confirmed the revocation."""

    topology: Topology | None = None
    validated_topology_epoch: int = 0
    assignment_configs: AssignmentConfigs = field(default_factory=dict)
    active_at: dict[TaskId, str] = field(default_factory=dict)  # task → the process of its owner
    # task → process → its standby and warm-up copies
    copies_at: dict[TaskId, dict[str, int]] = field(default_factory=dict)
    # Soft state, all of these.
    configured: Configured | None = None
    is_waiting_for_members: bool = False  # the first assignment is delayed until more members have joined
    shutdown_by: str | None = None  # the member that requested a shutdown of the whole application
    endpoint_epoch: int = 0  # grows when the tasks of members with endpoints change
    creation_errors: dict[str, tuple[str, int]] = field(default_factory=dict)  # topic → the error, and when to retry

    # --- what any kind of group is asked (`groups/group.py`)

    @property
    def kind(self) -> GroupKind:
        return GroupKind.STREAMS

    @property
    def protocol_type(self) -> str:
        return "streams"

    @property
    def state_name(self) -> str:
        is_ready = self.topology is not None and self.topology.epoch == self.validated_topology_epoch
        return reconciliation_state(self) if is_ready or not self.members else "NotReady"

    def check_commit(self, by: Committer) -> None:
        """Accept a commit with an older epoch for tasks that the member has owned since that epoch."""
        if commits_from_outside(self, by):
            return
        member = self.member(by.member_id)
        if not by.transactional and by.request_version < _OFFSET_COMMIT_BY_EPOCH:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if by.epoch == member.epoch:
            return
        if by.epoch > member.epoch or self.topology is None:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)
        for place in by.places():
            reader = self.topology.reader_of(place.topic)
            since = None if reader is None else _held_since(member, reader.id, place.partition)
            if since is None or by.epoch < since:
                raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member_epoch != member.epoch:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

    def check_delete(self) -> None:
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        """Always allowed: the topology says which topics are read."""

    def is_subscribed(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and self.topology.reader_of(topic) is not None

    def offsets_expire_since(self) -> int | None:
        return SINCE_COMMIT

    def tombstones(self) -> Sequence[Entry]:
        return [
            *(current_entry(self.group_id, member_id, None) for member_id in self.members),
            *(target_entry(self.group_id, member_id, None) for member_id in self.members),
            target_epoch_entry(self.group_id, None, 0),
            *(member_entry(self.group_id, member_id, None) for member_id in self.members),
            group_entry(self.group_id, None),
            topology_entry(self.group_id, None),
        ]

    # --- members and tasks

    def member(self, member_id: str) -> StreamsMember:
        """Return the member; raises UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def target_of(self, member_id: str) -> TaskSet:
        return self.targets.get(member_id, NOTHING)

    def facts(self) -> GroupFacts:
        return GroupFacts(self.epoch, self.metadata_hash, self.validated_topology_epoch, self.assignment_configs)

    def is_active_free_for(self, process_id: str, task: TaskId) -> bool:
        """Whether no member owns the task, and the process has no copy of it (both would use the same state
        directory).
        """
        return task not in self.active_at and process_id not in self.copies_at.get(task, {})

    def is_copy_free_for(self, process_id: str, task: TaskId) -> bool:
        """Whether the process has neither the task nor a copy of it."""
        return self.active_at.get(task) != process_id and process_id not in self.copies_at.get(task, {})

    def names_with(self, members: Mapping[str, StreamsMember]) -> frozenset[str]:
        return frozenset() if self.topology is None else self.topology.required_topics()

    # --- for `apply` and `note`

    def put_member(self, member: StreamsMember) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        for owned in (member.assigned, member.pending_revocation):
            self.active_at.update(dict.fromkeys(each(owned.active), member.process_id))
            for task in (*each(owned.standby), *each(owned.warmup)):
                copies = self.copies_at.setdefault(task, {})
                copies[member.process_id] = copies.get(member.process_id, 0) + 1
        self.members[member.member_id] = member

    def drop_member(self, member_id: str) -> None:
        old = self.members.pop(member_id, None)
        if old is not None:
            self._release(old)
        if not self.members:
            self.shutdown_by = None

    def set_topology(self, topology: Topology | None) -> None:
        self.topology = topology
        self._names = None

    def _release(self, member: StreamsMember) -> None:
        for owned in (member.assigned, member.pending_revocation):
            for task in each(owned.active):
                if self.active_at.get(task) == member.process_id:
                    del self.active_at[task]
            for task in (*each(owned.standby), *each(owned.warmup)):
                copies = self.copies_at[task]
                copies[member.process_id] -= 1
                if not copies[member.process_id]:
                    del copies[member.process_id]
                if not copies:
                    del self.copies_at[task]


def _held_since(member: StreamsMember, subtopology: str, partition: int) -> int | None:
    since = member.assigned.active.get(subtopology, {}).get(partition)
    if since is None:
        since = member.pending_revocation.active.get(subtopology, {}).get(partition)
    return since


def streams_group(view: GroupsView, group_id: str, missing: str = "Group {} not found.") -> StreamsGroup:
    """Return the streams group; raises GROUP_ID_NOT_FOUND."""
    return find_group(view, group_id, StreamsGroup, GroupKind.STREAMS, missing)
