"""How records change a consumer group: the same when they are written and when they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ottla.groups.consumer import entries
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import NO_OWNED, ConsumerMember
from ottla.groups.modern.apply import apply_current, apply_member, apply_target, apply_target_epoch, apply_to_group
from ottla.groups.modern.group import NO_EPOCH, MemberState
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
    assert entry.value is not None, "a tombstone ends the group"
    group.epoch = entry.value.epoch
    group.metadata_hash = entry.value.metadata_hash


def _partition_metadata(group: ConsumerGroup, entry: Entry) -> None:
    group.has_partition_metadata = entry.value is not None


def _described(member: ConsumerMember, value: journal.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    return replace(
        member,
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


def _reconciled(
    member: ConsumerMember, value: journal.ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerMember:
    if value is None:
        return replace(
            member,
            epoch=NO_EPOCH,
            previous_epoch=NO_EPOCH,
            state=MemberState.STABLE,
            assigned=NO_OWNED,
            pending_revocation=NO_OWNED,
        )
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in _STATES else MemberState.UNKNOWN,
        assigned=entries.owned_of(value.assigned_partitions, value.member_epoch),
        pending_revocation=entries.owned_of(value.partitions_pending_revocation, value.member_epoch),
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
    journal.ConsumerGroupMemberMetadataKey: partial(apply_member, new=ConsumerMember, described=_described),
    journal.ConsumerGroupTargetAssignmentMetadataKey: apply_target_epoch,
    journal.ConsumerGroupTargetAssignmentMemberKey: partial(apply_target, read=entries.target_of),
    journal.ConsumerGroupCurrentMemberAssignmentKey: partial(apply_current, new=ConsumerMember, reconciled=_reconciled),
    journal.ConsumerGroupRegularExpressionKey: _regex,
}
KEYS = tuple(_APPLIERS)
