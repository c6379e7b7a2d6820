"""Conversion of a classic group to and from its record in `__consumer_offsets`.

The record is written when a generation becomes Stable (with all assignments), when a group becomes Empty, when it is
created, and when a static member rejoins under another member id. Of a member's protocols only the chosen one is
stored: the others are not needed until members join again.
"""

from __future__ import annotations

from types import MappingProxyType

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState, MemberProtocol
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.wire.journal.consumer_offsets import GroupMetadataKey, GroupMetadataValue

Member = GroupMetadataValue.MemberMetadata

VERSION = 3  # of the value, as Kafka 4.3 writes it
_PROTOCOL_OF_OLD = "range"  # for old records, which lack the protocol


def entry_of(group: ClassicGroup) -> Entry:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            Member(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
    return Entry(GroupMetadataKey(group=group.group_id), value, VERSION)


def group_of(group_id: str, value: GroupMetadataValue, version: int) -> ClassicGroup:
    members = {each.member_id: _member_of(each, value.protocol or _PROTOCOL_OF_OLD, version) for each in value.members}
    # A leader that is no member could neither be replaced nor removed.
    leader = value.leader if value.leader in members else next(iter(members), None)
    group = ClassicGroup(
        group_id,
        state=ClassicState.STABLE if members else ClassicState.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        leader=leader,
        members=MappingProxyType(members),
        state_since_ms=value.current_state_timestamp,
    )
    return group.with_subscriptions()


def _member_of(member: Member, protocol: str, version: int) -> ClassicMember:
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout if version > 0 else member.session_timeout,
        protocols=(MemberProtocol(protocol, bytes(member.subscription)),),
        assignment=bytes(member.assignment),
    )


def apply_group(view: GroupsView, entry: Entry) -> None:
    """Apply a group's record. A tombstone removes only a classic group: a group of another kind may have taken the id
    before the tombstone is compacted away.
    """
    groups = view.state.groups
    group_id = entry.key.group
    if entry.value is not None:
        groups[group_id] = group_of(group_id, entry.value, entry.version)
    elif isinstance(groups.get(group_id), ClassicGroup):
        del groups[group_id]
