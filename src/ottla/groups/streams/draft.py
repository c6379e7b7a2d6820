"""StreamsDraft: the effects of one command on one streams group, collected step by step into a Result.

Nothing takes effect until the runner carries out the Result, so the steps pass on what they decided (the new topology,
the new epoch) instead of reading it from the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.modern.target import may_assign
from ottla.groups.modern.topics_changed import MetadataSeen
from ottla.groups.streams.assignor import StreamsMemberSpec, assign
from ottla.groups.streams.configure import Configured, StatusDetail, StreamsStatus, configure
from ottla.groups.streams.entries import (
    RECORDS,
    AssignmentConfigs,
    GroupFacts,
    current_entry,
    group_entry,
    target_entry,
)
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.notes import ConfiguredNow
from ottla.groups.streams.reconcile import StreamsGoal, reconcile
from ottla.groups.streams.tasks import NOTHING, TaskSet
from ottla.groups.streams.topology import Topology
from ottla.groups.view import GroupsView
from ottla.model.group_settings import STREAMS_ASSIGNMENT_INTERVAL_MS, STREAMS_NUM_STANDBY_REPLICAS

STANDBY_REPLICAS = "num.standby.replicas"
NOT_VALIDATED = -1


class StreamsTarget(NamedTuple):
    """The target of a member, and the epoch it was computed for."""

    epoch: int
    tasks: TaskSet


class StreamsDraft(GroupDraft[StreamsGroup]):
    """One command's draft. `group` is the group before the command."""

    def __init__(self, view: GroupsView, group: StreamsGroup, now_ms: int) -> None:
        super().__init__(view, group, now_ms)
        self.statuses: list[StatusDetail] = []  # for the member's answer

    def configure(self, topology: Topology) -> tuple[Configured, int]:
        """Return the topology's comparison with the present topics, and the hash of these topics."""
        group = self.group
        digest = group.metadata_hash
        configured = group.configured
        if configured is None or group.metadata_stale:
            digest = metadata_hash(topology.required_topics(), self.view.topics)
            self.notes.append(MetadataSeen(group.group_id))
        if configured is None or digest != group.metadata_hash:
            configured = configure(topology, self.view.topics)
            self.notes.append(ConfiguredNow(group.group_id, configured))
        return configured, digest

    def raise_epoch(self, topology: Topology, configured: Configured, digest: int, *, changed: bool) -> int:
        """Return the group's epoch: a new one if a member, the topics, the topology's validity or the settings
        changed.
        """
        group = self.group
        validated = topology.epoch if configured.is_ready else NOT_VALIDATED
        configs = self.assignment_configs()
        if (
            changed
            or digest != group.metadata_hash
            or validated != group.validated_topology_epoch
            or configs != group.assignment_configs
        ):
            self.records.append(group_entry(group.group_id, GroupFacts(group.epoch + 1, digest, validated, configs)))
            return group.epoch + 1
        return group.epoch

    def assignment_configs(self) -> AssignmentConfigs:
        return {STANDBY_REPLICAS: str(self.setting(STREAMS_NUM_STANDBY_REPLICAS))}

    def assign(
        self, epoch: int, member_id: str, members: Mapping[str, StreamsMember], configured: Configured, *, wait: bool
    ) -> StreamsTarget:
        """Return the member's target; compute new targets if the epoch requires it and the assignment interval has
        passed.
        """
        group = self.group
        if wait:
            self.delayed("Assignment delayed due to the configured initial rebalance delay.")
            return StreamsTarget(group.assignment_epoch, NOTHING)
        if epoch <= group.assignment_epoch:
            return StreamsTarget(group.assignment_epoch, group.target_of(member_id))
        if not may_assign(group.assigned_ms, self.setting(STREAMS_ASSIGNMENT_INTERVAL_MS), self.now_ms):
            self.delayed("Assignment delayed due to the configured assignment interval.")
            return StreamsTarget(group.assignment_epoch, group.target_of(member_id))
        specs = {
            one.member_id: StreamsMemberSpec(one.process_id, group.target_of(one.member_id)) for one in members.values()
        }
        copies = int(self.assignment_configs()[STANDBY_REPLICAS])
        ready = configured.is_ready
        targets = assign(specs, configured.subtopologies, copies) if ready else dict.fromkeys(specs, NOTHING)
        for name in sorted(targets):
            if group.targets.get(name) != targets[name]:
                self.records.append(target_entry(group.group_id, name, targets[name]))
        self.records.append(RECORDS.target_epoch(group.group_id, epoch, self.now_ms))
        return StreamsTarget(epoch, targets.get(member_id, NOTHING))

    def delayed(self, text: str) -> None:
        self.statuses.append(StatusDetail(StreamsStatus.ASSIGNMENT_DELAYED, text))

    def reconcile(self, member: StreamsMember, target: StreamsTarget, reported: TaskSet | None) -> StreamsMember:
        """Move the member as far towards its target as possible now."""
        if member.is_reconciled_to(target.epoch):
            return member
        group, process_id = self.group, member.process_id
        goal = StreamsGoal(
            target.epoch,
            target.tasks,
            lambda task: group.is_active_free_for(process_id, task),
            lambda task: group.is_copy_free_for(process_id, task),
        )
        new = reconcile(member, goal, reported)
        if new != member:
            self.records.append(current_entry(group.group_id, new))
        return new
