"""How records change a consumer group: the same when they are written and when they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ottla.groups.consumer import entries
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import NO_EPOCH, NO_OWNED, ConsumerMember
from ottla.groups.modern.apply import apply_target_epoch, apply_to_group
from ottla.groups.modern.group import MemberState
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.wire.journal import consumer_group as journal

_STATES = frozenset(MemberState)


def apply_to(group: ConsumerGroup, entry: Entry) -> None:
    """Apply an entry of this group that is not the tombstone of the group itself."""
    _APPLIERS[type(entry.key)](group, entry)


def apply_entry(view: GroupsView, entry: Entry) -> None:
    apply_to_group(view, entry, ConsumerGroup, journal.ConsumerGroupMetadataKey, _APPLIERS)


def _epoch(group: ConsumerGroup, entry: Entry) -> None:
    value: Any = entry.value
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _partition_metadata(group: ConsumerGroup, entry: Entry) -> None:
    group.has_partition_metadata = entry.value is not None


def _member(group: ConsumerGroup, entry: Entry) -> None:
    member_id, value = entry.key.member_id, entry.value
    if value is None:
        group.drop_member(member_id)
        return
    group.put_member(
        replace(
            group.members.get(member_id) or ConsumerMember(member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topics=frozenset(value.subscribed_topic_names),
            subscribed_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=entries.classic_of(value.classic_member_metadata),
        )
    )


def _target(group: ConsumerGroup, entry: Entry) -> None:
    if entry.value is None:
        group.targets.pop(entry.key.member_id, None)
    else:
        group.targets[entry.key.member_id] = entries.target_of(entry.value.topic_partitions)


def _current(group: ConsumerGroup, entry: Entry) -> None:
    member_id, value = entry.key.member_id, entry.value
    old = group.members.get(member_id)
    if value is None:
        if old is not None:
            group.put_member(
                replace(
                    old,
                    epoch=NO_EPOCH,
                    previous_epoch=NO_EPOCH,
                    state=MemberState.STABLE,
                    assigned=NO_OWNED,
                    pending_revocation=NO_OWNED,
                )
            )
        return
    group.put_member(
        replace(
            old or ConsumerMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in _STATES else MemberState.UNKNOWN,
            assigned=entries.owned_of(value.assigned_partitions, value.member_epoch),
            pending_revocation=entries.owned_of(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _regex(group: ConsumerGroup, entry: Entry) -> None:
    regex, value = entry.key.regular_expression, entry.value
    resolved = None
    if value is not None:
        resolved = entries.ResolvedRegex(frozenset(value.topics), value.timestamp, value.version)
    group.put_regex(regex, resolved)


_APPLIERS: dict[type, Callable[[ConsumerGroup, Entry], None]] = {
    journal.ConsumerGroupMetadataKey: _epoch,
    journal.ConsumerGroupPartitionMetadataKey: _partition_metadata,
    journal.ConsumerGroupMemberMetadataKey: _member,
    journal.ConsumerGroupTargetAssignmentMetadataKey: apply_target_epoch,
    journal.ConsumerGroupTargetAssignmentMemberKey: _target,
    journal.ConsumerGroupCurrentMemberAssignmentKey: _current,
    journal.ConsumerGroupRegularExpressionKey: _regex,
}
KEYS = tuple(_APPLIERS)
