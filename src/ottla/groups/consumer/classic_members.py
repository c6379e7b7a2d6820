"""Members of the classic protocol in a consumer group: their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Such a member learns from its heartbeats that it has to rejoin: when the group's epoch grew, when it has to revoke
partitions, or when partitions it waits for are free. Its JoinGroup is answered at once and lists the partitions it
owns; its SyncGroup returns what the coordinator assigned. This is the reconciliation of other members in the steps of
the classic protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.classic.arguments import HeartbeatArguments, JoinArguments, Leaver, SyncArguments
from ottla.groups.classic.rebalance import prepare
from ottla.groups.classic.turn import JoinReply, SyncReply
from ottla.groups.consumer.downgrade import classic_turn, may_downgrade, merged, migration_policy
from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from ottla.groups.consumer.heartbeat import check_full, replace_static
from ottla.groups.consumer.leave import TIMEOUTS, check_instance, remove
from ottla.groups.consumer.member import ClassicProtocol, ClassicSide, ConsumerMember, without_epochs
from ottla.groups.consumer.protocol import by_ids, read_subscription, write_assignment
from ottla.groups.consumer.regexes import update_regexes
from ottla.groups.modern.group import MemberState
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import random_uuid, uuid_text
from ottla.wire.types import WireError


class Rejoining(NamedTuple):
    """A note: the member was told to rejoin and has a timer for it (`expected`), or no longer."""

    group_id: str
    member_id: str
    expected: bool


def note_rejoining(view: GroupsView, note: Rejoining) -> None:
    group = view.state.groups.get(note.group_id)
    if isinstance(group, ConsumerGroup):
        group.rejoining = group.rejoining - {note.member_id} | ({note.member_id} if note.expected else frozenset())


# --- join


def join(command: JoinArguments, group: ConsumerGroup, view: GroupsView, now_ms: int) -> Result[Entry, JoinReply]:
    """Handle a JoinGroup; replies with a JoinReply."""
    if migration_policy(view) == "disabled":
        return Result(reply=JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, command.member_id))
    draft = ConsumerDraft(view, group, now_ms)
    member_id = command.member_id or uuid_text(random_uuid(view.rng))
    try:
        check_full(draft, member_id)
        if not _supports(group, command):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not command.member_id and command.instance_id is None and command.needs_known_id:
            return Result(reply=JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        return _take_in(draft, command, member_id)
    except ApiError as error:
        return Result(reply=JoinReply(error.code, command.member_id))


def _supports(group: ConsumerGroup, command: JoinArguments) -> bool:
    """Whether all members of the classic protocol, with this one, have one protocol in common."""
    if command.protocol_type != PROTOCOL_TYPE:
        return False
    others = [{each.name for each in member.classic.protocols} for member in group.members.values() if member.classic]
    return any(all(protocol.name in other for other in others) for protocol in command.protocols)


def _take_in(draft: ConsumerDraft, command: JoinArguments, member_id: str) -> Result[Entry, JoinReply]:
    former = draft.group.static_member(command.instance_id)
    is_downgrade = former is not None and may_downgrade_with(draft, former)
    old = _member(draft, command, former, member_id)
    try:
        subscription = read_subscription(command.protocols[0].metadata)
    except WireError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    new = replace(
        old,
        instance_id=old.instance_id if command.instance_id is None else command.instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        subscribed_regex="",
        client_id=command.client_id,
        client_host=command.client_host,
        classic=ClassicSide(
            command.session_timeout_ms, tuple(ClassicProtocol(each.name, each.metadata) for each in command.protocols)
        ),
    )
    members = {**draft.group.members, member_id: new}
    topics_changed = draft.describe(old, new)
    changed = update_regexes(draft, old, new).updated or topics_changed
    if changed or draft.group.metadata_stale:
        draft.refresh(members, bump=changed)
    owned = by_ids(subscription.owned_partitions, draft.view.topics)
    if is_downgrade:
        return _downgrade(draft, new, members, changed=changed)
    target_epoch, target = draft.assign(new, members)
    new = draft.reconcile(new, target_epoch, target, changed=changed, reported=owned)
    _expect_sync(draft, new)
    return draft.result(_reply(new))


def may_downgrade_with(draft: ConsumerDraft, former: ConsumerMember) -> bool:
    """Whether the group's last member of the new protocol, a static one, is being replaced by one of the classic
    protocol.
    """
    return former.classic is None and may_downgrade(draft, [former.member_id], coming=1)


def _member(
    draft: ConsumerDraft, command: JoinArguments, former: ConsumerMember | None, member_id: str
) -> ConsumerMember:
    if command.instance_id is None or (former is None and not command.member_id):
        return draft.group.members.get(member_id) or ConsumerMember(member_id)
    if command.member_id:
        return check_instance(former, member_id, command.instance_id)
    assert former is not None
    return replace_static(draft, former, member_id)


def _downgrade(
    draft: ConsumerDraft, member: ConsumerMember, members: dict[str, ConsumerMember], *, changed: bool
) -> Result[Entry, JoinReply]:
    """Continue as a classic group; without a rebalance if the member's subscription has not changed."""
    draft.group = draft.group.scratch()
    for each in members.values():
        draft.group.put_member(each)
    draft.records += draft.group.tombstones()
    turn = classic_turn(draft, ())
    if changed:
        prepare(turn)
    reply = _reply(member)._replace(generation=turn.group.generation, protocol_name=turn.group.protocol)
    return merged(draft, turn, reply)


def _expect_sync(draft: ConsumerDraft, member: ConsumerMember) -> None:
    assert member.classic is not None
    group_id, member_id = draft.group.group_id, member.member_id
    draft.cancel(("rejoin", group_id, member_id))
    draft.notes.append(Rejoining(group_id, member_id, expected=False))
    TIMEOUTS.keep_session(draft, member_id, member.classic.session_timeout_ms)
    end = TIMEOUTS.end_of(draft, member_id, of_rebalance=True)
    draft.after(("sync", group_id, member_id), member.rebalance_timeout_ms, end)


def _reply(member: ConsumerMember) -> JoinReply:
    assert member.classic is not None
    return JoinReply(
        member_id=member.member_id,
        generation=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0].name,
    )


# --- sync, heartbeat, leave


def sync(command: SyncArguments, group: ConsumerGroup, view: GroupsView, now_ms: int) -> Result[Entry, SyncReply]:
    """Handle a SyncGroup; replies with a SyncReply."""
    member = _checked(group, command.member_id, command.instance_id, command.generation)
    assert member.classic is not None
    protocol = member.classic.protocols[0]
    type_differs = command.protocol_type not in (None, PROTOCOL_TYPE)
    if type_differs or command.protocol_name not in (None, protocol.name):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    draft = ConsumerDraft(view, group, now_ms)
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_rejoin(draft, member)
        return draft.result(SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
    draft.cancel(("sync", group.group_id, member.member_id))
    TIMEOUTS.keep_session(draft, member.member_id, member.classic.session_timeout_ms)
    assignment = write_assignment(without_epochs(member.assigned), view.topics, protocol.metadata)
    return draft.result(SyncReply(ErrorCode.NONE, command.protocol_type, command.protocol_name, assignment))


def heartbeat(
    command: HeartbeatArguments, group: ConsumerGroup, view: GroupsView, now_ms: int
) -> Result[Entry, ErrorCode]:
    """Handle a Heartbeat; replies with an ErrorCode."""
    member = _checked(group, command.member_id, command.instance_id, command.generation)
    assert member.classic is not None
    draft = ConsumerDraft(view, group, now_ms)
    TIMEOUTS.keep_session(draft, member.member_id, member.classic.session_timeout_ms)
    can_get_more = member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member)
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS or can_get_more:
        _expect_rejoin(draft, member)
        return draft.result(ErrorCode.REBALANCE_IN_PROGRESS)
    return draft.result(ErrorCode.NONE)


def _checked(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = check_instance(group.static_member(instance_id), member_id, instance_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if generation != member.epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _expect_rejoin(draft: ConsumerDraft, member: ConsumerMember) -> None:
    """Start the rejoin timer (the member's rebalance timeout) when the member is first told to rejoin."""
    group_id, member_id = draft.group.group_id, member.member_id
    if member_id not in draft.group.rejoining:
        draft.notes.append(Rejoining(group_id, member_id, expected=True))
        draft.after(("rejoin", group_id, member_id), member.rebalance_timeout_ms, RejoinEnded(group_id, member_id))


@dataclass(frozen=True, slots=True)
class RejoinEnded:
    """Remove a member that was told to rejoin and did not."""

    group_id: str
    member_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ConsumerGroup) or self.member_id not in group.rejoining:
            return Result()
        return remove(ConsumerDraft(view, group, now_ms), [group.member(self.member_id)], None)


def leave(
    leavers: Sequence[Leaver], group: ConsumerGroup, view: GroupsView, now_ms: int
) -> Result[Entry, tuple[ErrorCode, ...]]:
    """Handle a LeaveGroup; replies with an ErrorCode for each leaver."""
    outcomes: list[ErrorCode] = []
    gone: dict[str, ConsumerMember] = {}
    for member_id, instance_id, _ in leavers:
        try:
            member = _leaver(group, member_id, instance_id)
        except ApiError as error:
            outcomes.append(error.code)
            continue
        gone[member.member_id] = member
        outcomes.append(ErrorCode.NONE)
    if not gone:
        return Result(reply=tuple(outcomes))
    return remove(ConsumerDraft(view, group, now_ms), list(gone.values()), tuple(outcomes))


def _leaver(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member to remove. An operator gives no member id, only the instance id of a static member."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        found = group.static_member(instance_id)
        member = check_instance(found, member_id or (found.member_id if found else ""), instance_id)
    return member
