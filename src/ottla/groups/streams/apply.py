"""How records change a streams group: the same when they are written and when they are loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ottla.groups.modern.apply import apply_target_epoch, apply_to_group
from ottla.groups.modern.group import MemberState
from ottla.groups.streams import entries
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import NO_EPOCH, StreamsMember, UserEndpoint
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


def _member(group: StreamsGroup, entry: Entry) -> None:
    member_id, value = entry.key.member_id, entry.value
    if value is None:
        group.drop_member(member_id)
        return
    endpoint = value.user_endpoint
    group.put_member(
        replace(
            group.members.get(member_id) or StreamsMember(member_id),
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
    )


def _target(group: StreamsGroup, entry: Entry) -> None:
    if entry.value is None:
        group.targets.pop(entry.key.member_id, None)
    else:
        group.targets[entry.key.member_id] = entries.target_of(entry.value)


def _current(group: StreamsGroup, entry: Entry) -> None:
    member_id, value = entry.key.member_id, entry.value
    old = group.members.get(member_id)
    if value is not None:
        group.put_member(
            replace(
                old or StreamsMember(member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=entries.state_of(value),
                assigned=entries.assigned_of(value),
                pending_revocation=entries.pending_of(value),
            )
        )
    elif old is not None:
        group.put_member(
            replace(
                old,
                epoch=NO_EPOCH,
                previous_epoch=NO_EPOCH,
                state=MemberState.STABLE,
                assigned=NOTHING_OWNED,
                pending_revocation=NOTHING_OWNED,
            )
        )


_APPLIERS: dict[type, Callable[[StreamsGroup, Entry], None]] = {
    journal.StreamsGroupMetadataKey: _facts,
    journal.StreamsGroupTopologyKey: _topology,
    journal.StreamsGroupMemberMetadataKey: _member,
    journal.StreamsGroupTargetAssignmentMetadataKey: apply_target_epoch,
    journal.StreamsGroupTargetAssignmentMemberKey: _target,
    journal.StreamsGroupCurrentMemberAssignmentKey: _current,
}
KEYS = tuple(_APPLIERS)
