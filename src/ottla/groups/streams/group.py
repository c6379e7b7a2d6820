"""StreamsGroup: a topology, its members, their present and target tasks; only `apply` and `note` change it.

    Empty ──a member──▶ NotReady ──all topics are there──▶ Assigning ──▶ Reconciling ──▶ Stable

Deleted topics make it NotReady again; other changes lead back to Assigning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.groups.find import find_group
from ottla.groups.group import Committer, GroupKind
from ottla.groups.modern.reconciled import ReconciledGroup
from ottla.groups.streams.configure import Configured
from ottla.groups.streams.entries import (
    RECORDS,
    AssignmentConfigs,
    GroupFacts,
    group_tombstone,
    topology_tombstone,
)
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import NOTHING, TaskId, TaskSet, each
from ottla.groups.streams.topology import Topology
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry


@dataclass(slots=True)
class StreamsGroup(ReconciledGroup[StreamsMember, TaskSet]):
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
        return self.reconciliation_state() if is_ready or not self.members else "NotReady"

    def owned_since(self, member: StreamsMember, by: Committer) -> Iterator[int | None]:
        if self.topology is None:
            yield None
            return
        for place in by.places():
            reader = self.topology.reader_of(place.topic)
            yield None if reader is None else _held_since(member, reader.id, place.partition)

    def is_subscribed(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and self.topology.reader_of(topic) is not None

    def tombstones(self) -> Sequence[Entry]:
        return [
            *RECORDS.tombstones(self.group_id, self.members),
            group_tombstone(self.group_id),
            topology_tombstone(self.group_id),
        ]

    # --- members and tasks

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
