"""The share groups' part of the group coordinator's machine: how their entries and notes change the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions, frozen
from ottla.groups.group import Group
from ottla.groups.modern.apply import apply_current, apply_member, apply_target, apply_target_epoch, apply_to_group
from ottla.groups.modern.group import NO_EPOCH, MemberState
from ottla.groups.part import GroupsPart
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import session_timer
from ottla.groups.share.member import SharedTopic, SharedTopics, ShareMember, StatePartitions
from ottla.groups.share.state_partitions import InitializationSent, forgetting
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.wire.journal import share_group as journal

_Target = journal.ShareGroupTargetAssignmentMemberValue.TopicPartition
_Assigned = journal.ShareGroupCurrentMemberAssignmentValue.TopicPartitions


def _apply(view: GroupsView, entry: Entry) -> None:
    apply_to_group(view, entry, ShareGroup, journal.ShareGroupMetadataKey, _APPLIERS)


def _apply_group(group: ShareGroup, entry: Entry) -> None:
    assert entry.value is not None, "a tombstone ends the group"
    group.epoch = entry.value.epoch
    group.metadata_hash = entry.value.metadata_hash


def _described(member: ShareMember, value: journal.ShareGroupMemberMetadataValue) -> ShareMember:
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topics=frozenset(value.subscribed_topic_names),
    )


def _reconciled(member: ShareMember, value: journal.ShareGroupCurrentMemberAssignmentValue | None) -> ShareMember:
    if value is None:
        return replace(member, epoch=NO_EPOCH, previous_epoch=NO_EPOCH, assigned=NO_PARTITIONS)
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_partitions(value.assigned_partitions),
    )


def _target(value: journal.ShareGroupTargetAssignmentMemberValue) -> Partitions:
    return _partitions(value.topic_partitions)


def _apply_state_partitions(group: ShareGroup, entry: Entry) -> None:
    value = entry.value
    if value is None:
        group.state_partitions = None
        return
    group.state_partitions = StatePartitions(
        _by_id(value.initializing_topics),
        _by_id(value.initialized_topics),
        frozenset(each.topic_id for each in value.deleting_topics),
    )
    for topic_id in tuple(group.initializing_since):
        if topic_id not in group.state_partitions.initializing:
            del group.initializing_since[topic_id]


def _note_asked(view: GroupsView, note: InitializationSent) -> None:
    group = view.state.groups.get(note.group_id)
    if isinstance(group, ShareGroup):
        group.initializing_since.update(dict.fromkeys(note.topic_ids, note.now_ms))


def _partitions(topics: Iterable[_Target | _Assigned]) -> Partitions:
    return frozen({each.topic_id: set(each.partitions) for each in topics})


def _by_id(topics: Iterable[journal.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]) -> SharedTopics:
    return {each.topic_id: SharedTopic(each.topic_name, frozenset(each.partitions)) for each in topics}


def _loaded(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    """After loading, start the members' session timers, and forget topics that were deleted meanwhile."""
    found = [group for group in groups if isinstance(group, ShareGroup)]
    return Result(
        forgetting(view, found, lambda topic_id: view.topics.by_id(topic_id) is None),
        timers=[
            session_timer(view, group.group_id, member_id, now_ms) for group in found for member_id in group.members
        ],
    )


_APPLIERS: dict[type, Callable[[ShareGroup, Entry], None]] = {
    journal.ShareGroupMetadataKey: _apply_group,
    journal.ShareGroupMemberMetadataKey: partial(apply_member, new=ShareMember, described=_described),
    journal.ShareGroupTargetAssignmentMetadataKey: apply_target_epoch,
    journal.ShareGroupTargetAssignmentMemberKey: partial(apply_target, read=_target),
    journal.ShareGroupCurrentMemberAssignmentKey: partial(apply_current, new=ShareMember, reconciled=_reconciled),
    journal.ShareGroupStatePartitionMetadataKey: _apply_state_partitions,
}
PART = GroupsPart(dict.fromkeys(_APPLIERS, _apply), {InitializationSent: _note_asked}, _loaded)
