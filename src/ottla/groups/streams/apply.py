"""How records change a streams group: the same when they are written and when they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ottla.groups.modern.apply import apply_current, apply_member, apply_target, apply_target_epoch, apply_to_group
from ottla.groups.modern.group import NO_EPOCH, MemberState
from ottla.groups.streams import entries
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import StreamsMember, UserEndpoint
from ottla.groups.streams.tasks import NOTHING_OWNED
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.wire.journal import streams_group as journal


def apply_entry(view: GroupsView, entry: Entry) -> None:
    apply_to_group(view, entry, StreamsGroup, journal.StreamsGroupMetadataKey, _APPLIERS)


def _facts(group: StreamsGroup, entry: Entry) -> None:
    value = entry.value
    assert value is not None
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.validated_topology_epoch = value.validated_topology_epoch
    group.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}


def _topology(group: StreamsGroup, entry: Entry) -> None:
    group.set_topology(None if entry.value is None else entries.topology_of(entry.value))


def _described(member: StreamsMember, value: journal.StreamsGroupMemberMetadataValue) -> StreamsMember:
    endpoint = value.user_endpoint
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
        client_tags=tuple((each.key, each.value) for each in value.client_tags),
    )


def _reconciled(member: StreamsMember, value: journal.StreamsGroupCurrentMemberAssignmentValue | None) -> StreamsMember:
    if value is None:
        return replace(
            member,
            epoch=NO_EPOCH,
            previous_epoch=NO_EPOCH,
            state=MemberState.STABLE,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=entries.state_of(value),
        assigned=entries.assigned_of(value),
        pending_revocation=entries.pending_of(value),
    )


_APPLIERS: dict[type, Callable[[StreamsGroup, Entry], None]] = {
    journal.StreamsGroupMetadataKey: _facts,
    journal.StreamsGroupTopologyKey: _topology,
    journal.StreamsGroupMemberMetadataKey: partial(apply_member, new=StreamsMember, described=_described),
    journal.StreamsGroupTargetAssignmentMetadataKey: apply_target_epoch,
    journal.StreamsGroupTargetAssignmentMemberKey: partial(apply_target, read=entries.target_of),
    journal.StreamsGroupCurrentMemberAssignmentKey: partial(apply_current, new=StreamsMember, reconciled=_reconciled),
}
KEYS = tuple(_APPLIERS)
