"""ConsumerDraft: the effects of one command on one consumer group, collected step by step into a Result.

Nothing takes effect until the runner carries out the Result, so later steps cannot see in the group what earlier ones
decided: the draft holds the new epoch. If too much changes first (a static member returns under another id, a classic
group becomes a consumer group), the entries are applied to a scratch copy and the later steps use that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.groups.assign.range import range_
from ottla.groups.assign.spec import Assignor, Partitions, are_disjoint
from ottla.groups.assign.uniform import uniform
from ottla.groups.consumer.apply import apply_to
from ottla.groups.consumer.entries import (
    RECORDS,
    current_entry,
    epoch_entry,
    member_entry,
    partition_metadata_tombstone,
    target_entry,
)
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.reconcile import ConsumerGoal, Reported, reconcile
from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.metadata import metadata_hash
from ottla.groups.modern.target import TargetMember, changes, may_assign, new_targets
from ottla.groups.modern.topics_changed import MetadataSeen
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.model.group_settings import CONSUMER_ASSIGNMENT_INTERVAL_MS
from ottla.model.settings.groups import GROUP_CONSUMER_ASSIGNORS

ASSIGNORS: Mapping[str, Assignor] = {
    "uniform": uniform,
    "range": range_,
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": uniform,
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": range_,
}
_NAMES: Mapping[Assignor, str] = {uniform: "uniform", range_: "range"}


def assignor_names(configured: Iterable[str]) -> list[str]:
    """Return the assignors of `group.consumer.assignors` by the names that members use; the first is the default."""
    return [_NAMES[ASSIGNORS[each]] for each in configured if each in ASSIGNORS]


class ConsumerDraft(GroupDraft[ConsumerGroup]):
    """One command's draft. `group` is the group before the command, or a scratch copy."""

    def __init__(self, view: GroupsView, group: ConsumerGroup, now_ms: int) -> None:
        super().__init__(view, group, now_ms)
        self.epoch = group.epoch
        self.must_bump = False  # the targets do not belong to the group's epoch, even if the numbers are equal

    def anticipate(self, entries: list[Entry]) -> None:
        """Write entries that later steps build upon, and apply them to a scratch copy."""
        self.records += entries
        self.group = self.group.scratch()
        for entry in entries:
            apply_to(self.group, entry)

    def describe(self, old: ConsumerMember, new: ConsumerMember) -> bool:
        """Write a member's own description if it changed; return whether it subscribes to other topics."""
        if new is old or (old.member_id in self.group.members and new.describes_itself_as(old)):
            return False
        self.records.append(member_entry(self.group.group_id, new))
        return new.subscribed_topics != old.subscribed_topics

    def refresh(self, members: Mapping[str, ConsumerMember], *, bump: bool) -> None:
        """Recompute the hash of the topics that these members read; bump the epoch if it changed, or if `bump`."""
        names = self.group.names_with(members)
        digest = self.group.metadata_hash
        if self.group.metadata_stale or names != self.group.subscribed_names():
            digest = metadata_hash(names, self.view.topics)
        if bump or digest != self.group.metadata_hash:
            self.bump(digest)
        self.notes.append(MetadataSeen(self.group.group_id))

    def bump(self, digest: int) -> None:
        self.epoch += 1
        self.records.append(epoch_entry(self.group.group_id, self.epoch, digest))
        if self.group.has_partition_metadata:
            self.records.append(partition_metadata_tombstone(self.group.group_id))

    def assign(self, member: ConsumerMember, members: Mapping[str, ConsumerMember]) -> tuple[int, Partitions]:
        """Return the epoch and the target of `member`; compute new targets if the epoch requires it and the assignment
        interval has passed.
        """
        group = self.group
        if self.epoch <= group.assignment_epoch or not self._is_time():
            return group.assignment_epoch, group.target_of(member.member_id)
        readers = {
            each.member_id: TargetMember(
                group.topics_of(each), group.target_of(each.member_id), each.instance_id, each.rack_id
            )
            for each in members.values()
        }
        targets = new_targets(readers, self.view.topics, self._assignor(members))
        assert are_disjoint(targets.values()), f"{group.group_id}: two members would own the same partition"
        for change in changes(group.targets, targets):
            self.records.append(target_entry(group.group_id, change.member_id, change.target))
        self.records.append(RECORDS.target_epoch(group.group_id, self.epoch, self.now_ms))
        return self.epoch, targets[member.member_id]

    def _is_time(self) -> bool:
        return may_assign(self.group.assigned_ms, self.setting(CONSUMER_ASSIGNMENT_INTERVAL_MS), self.now_ms)

    def _assignor(self, members: Mapping[str, ConsumerMember]) -> Assignor:
        names = assignor_names(self.view.setting(GROUP_CONSUMER_ASSIGNORS))
        preferred = self.group.preferred_assignor(members)
        return ASSIGNORS[preferred if preferred in names else names[0]]

    def reconcile(
        self, member: ConsumerMember, target_epoch: int, target: Partitions, *, changed: bool, reported: Reported
    ) -> ConsumerMember:
        """Move the member as far towards its target as possible now."""
        if not changed and member.is_reconciled_to(target_epoch):
            return member
        group = self.group

        def subscribed() -> frozenset[bytes]:
            found = (self.view.topics.by_name(name) for name in group.topics_of(member))
            return frozenset(info.id for info in found if info is not None)

        def is_free(topic_id: bytes, partition: int) -> bool:
            return group.is_free_for(member.member_id, topic_id, partition)

        new = reconcile(member, ConsumerGoal(target_epoch, target, subscribed, changed, is_free), reported)
        if new != member:
            self.records.append(current_entry(group.group_id, new))
        return new
