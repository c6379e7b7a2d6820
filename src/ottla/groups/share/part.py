"""The share groups' part of the group coordinator's machine: what their entries and notes change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions, frozen
from ottla.groups.modern.group import MemberState
from ottla.groups.share.book import Asked, forgetting
from ottla.groups.share.group import NO_EPOCH, BookSide, ShareGroup, ShareMember, StateBook, TopicShares
from ottla.groups.share.heartbeat import session_timer
from ottla.groups.view import View
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.wire.journal import share_group as journal


def _existing(view: View, group_id: str) -> ShareGroup | None:
    group = view.state.groups.get(group_id)
    return group if isinstance(group, ShareGroup) else None


def _group(view: View, group_id: str) -> ShareGroup:
    """Any entry of a group makes it exist: compaction may have left out the others."""
    group = _existing(view, group_id)
    if group is None:
        group = ShareGroup(group_id)
        view.state.groups[group_id] = group
    return group


def _apply_group(view: View, entry: Entry) -> None:
    if entry.value is None:
        if _existing(view, entry.key.group_id) is not None:
            del view.state.groups[entry.key.group_id]
        return
    group = _group(view, entry.key.group_id)
    group.epoch = entry.value.epoch
    group.metadata_hash = entry.value.metadata_hash


def _apply_member(view: View, entry: Entry) -> None:
    key, value = entry.key, entry.value
    if value is None:
        group = _existing(view, key.group_id)
        if group is not None:
            group.drop_member(key.member_id)
        return
    group = _group(view, key.group_id)
    group.put_member(
        replace(
            group.members.get(key.member_id, ShareMember(key.member_id)),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=frozenset(value.subscribed_topic_names),
        )
    )


def _apply_targets(view: View, entry: Entry) -> None:
    group = _existing(view, entry.key.group_id) if entry.value is None else _group(view, entry.key.group_id)
    if group is not None:
        group.assignment_epoch = NO_EPOCH if entry.value is None else entry.value.assignment_epoch
        group.assigned_ms = 0 if entry.value is None else entry.value.assignment_timestamp


def _apply_target(view: View, entry: Entry) -> None:
    key, value = entry.key, entry.value
    if value is not None:
        _group(view, key.group_id).targets[key.member_id] = _partitions(value.topic_partitions)
    elif (group := _existing(view, key.group_id)) is not None:
        group.targets.pop(key.member_id, None)


def _apply_current(view: View, entry: Entry) -> None:
    key, value = entry.key, entry.value
    if value is not None:
        group = _group(view, key.group_id)
        group.put_member(
            replace(
                group.members.get(key.member_id, ShareMember(key.member_id)),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=_partitions(value.assigned_partitions),
            )
        )
        return
    existing = _existing(view, key.group_id)
    if existing is not None and key.member_id in existing.members:
        member = existing.members[key.member_id]
        existing.put_member(replace(member, epoch=NO_EPOCH, previous_epoch=NO_EPOCH, assigned=NO_PARTITIONS))


def _apply_book(view: View, entry: Entry) -> None:
    value = entry.value
    if value is None:
        group = _existing(view, entry.key.group_id)
        if group is not None:
            group.book = None
        return
    group = _group(view, entry.key.group_id)
    group.book = StateBook(
        _side(value.initializing_topics),
        _side(value.initialized_topics),
        frozenset(each.topic_id for each in value.deleting_topics),
    )
    for topic_id in tuple(group.initializing_since):
        if topic_id not in group.book.initializing:
            del group.initializing_since[topic_id]


def _note_asked(view: View, note: Asked) -> None:
    group = _existing(view, note.group_id)
    if group is not None:
        group.initializing_since.update(dict.fromkeys(note.topic_ids, note.now_ms))


def _partitions(topics: Iterable[Any]) -> Partitions:
    return frozen({each.topic_id: set(each.partitions) for each in topics})


def _side(topics: Iterable[Any]) -> BookSide:
    return {each.topic_id: TopicShares(each.topic_name, frozenset(each.partitions)) for each in topics}


def _loaded(view: View, now_ms: int) -> Result[Entry]:
    """Members that are still there have a session's time to say so; topics may have gone while nobody looked."""
    groups = [group for group in view.state.groups.values() if isinstance(group, ShareGroup)]
    return Result(
        forgetting(view, lambda topic_id: view.topics.by_id(topic_id) is None),
        timers=[
            session_timer(view, group.group_id, member_id, now_ms) for group in groups for member_id in group.members
        ],
    )


APPLY: dict[type, Any] = {
    journal.ShareGroupMetadataKey: _apply_group,
    journal.ShareGroupMemberMetadataKey: _apply_member,
    journal.ShareGroupTargetAssignmentMetadataKey: _apply_targets,
    journal.ShareGroupTargetAssignmentMemberKey: _apply_target,
    journal.ShareGroupCurrentMemberAssignmentKey: _apply_current,
    journal.ShareGroupStatePartitionMetadataKey: _apply_book,
}
NOTE: dict[type, Any] = {Asked: _note_asked}
LOADED = _loaded
