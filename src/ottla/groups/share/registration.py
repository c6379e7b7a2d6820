"""The share groups' part of the group coordinator's machine: how their entries and notes change the state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions, frozen
from ottla.groups.group import Group
from ottla.groups.modern.apply import apply_to_group
from ottla.groups.modern.group import MemberState
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import session_timer
from ottla.groups.share.member import NO_EPOCH, SharedTopic, SharedTopics, ShareMember, StatePartitions
from ottla.groups.share.state_partitions import InitializationSent, forgetting
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.wire.journal import share_group as journal


def _apply(view: GroupsView, entry: Entry) -> None:
    apply_to_group(view, entry, ShareGroup, journal.ShareGroupMetadataKey, _APPLIERS)


def _apply_group(group: ShareGroup, entry: Entry) -> None:
    assert entry.value is not None, "a tombstone ends the group"
    group.epoch = entry.value.epoch
    group.metadata_hash = entry.value.metadata_hash


def _apply_member(group: ShareGroup, entry: Entry) -> None:
    member_id, value = entry.key.member_id, entry.value
    if value is None:
        group.drop_member(member_id)
        return
    group.put_member(
        replace(
            group.members.get(member_id, ShareMember(member_id)),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=frozenset(value.subscribed_topic_names),
        )
    )


def _apply_targets(group: ShareGroup, entry: Entry) -> None:
    group.assignment_epoch = NO_EPOCH if entry.value is None else entry.value.assignment_epoch
    group.assigned_ms = 0 if entry.value is None else entry.value.assignment_timestamp


def _apply_target(group: ShareGroup, entry: Entry) -> None:
    if entry.value is None:
        group.targets.pop(entry.key.member_id, None)
    else:
        group.targets[entry.key.member_id] = _partitions(entry.value.topic_partitions)


def _apply_current(group: ShareGroup, entry: Entry) -> None:
    member_id, value = entry.key.member_id, entry.value
    member = group.members.get(member_id)
    if value is not None:
        group.put_member(
            replace(
                member or ShareMember(member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=_partitions(value.assigned_partitions),
            )
        )
    elif member is not None:
        group.put_member(replace(member, epoch=NO_EPOCH, previous_epoch=NO_EPOCH, assigned=NO_PARTITIONS))


def _apply_book(group: ShareGroup, entry: Entry) -> None:
    value = entry.value
    if value is None:
        group.book = None
        return
    group.book = StatePartitions(
        _side(value.initializing_topics),
        _side(value.initialized_topics),
        frozenset(each.topic_id for each in value.deleting_topics),
    )
    for topic_id in tuple(group.initializing_since):
        if topic_id not in group.book.initializing:
            del group.initializing_since[topic_id]


def _note_asked(view: GroupsView, note: InitializationSent) -> None:
    group = view.state.groups.get(note.group_id)
    if isinstance(group, ShareGroup):
        group.initializing_since.update(dict.fromkeys(note.topic_ids, note.now_ms))


def _partitions(topics: Iterable[Any]) -> Partitions:
    return frozen({each.topic_id: set(each.partitions) for each in topics})


def _side(topics: Iterable[Any]) -> SharedTopics:
    return {each.topic_id: SharedTopic(each.topic_name, frozenset(each.partitions)) for each in topics}


def _loaded(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry]:
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
    journal.ShareGroupMemberMetadataKey: _apply_member,
    journal.ShareGroupTargetAssignmentMetadataKey: _apply_targets,
    journal.ShareGroupTargetAssignmentMemberKey: _apply_target,
    journal.ShareGroupCurrentMemberAssignmentKey: _apply_current,
    journal.ShareGroupStatePartitionMetadataKey: _apply_book,
}
APPLY: dict[type, Any] = dict.fromkeys(_APPLIERS, _apply)
NOTE: dict[type, Any] = {InitializationSent: _note_asked}
LOADED = _loaded
