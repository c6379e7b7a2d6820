"""The phases of a rebalance, as steps of a Turn, and the timers that end them.

Preparing: members (re)join. The phase ends when all have joined, or after the longest rebalance timeout, without those
that did not. The first rebalance of an empty group instead waits for `group.initial.rebalance.delay.ms`, and again as
long as more members join, up to the rebalance timeout. Completing: the leader has the list of members and sends the
assignment; members that do not ask for theirs within the rebalance timeout are removed, which starts the next
rebalance. Static members that did not rejoin stay: only their session timeout removes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.journal import entry_of
from ottla.groups.classic.turn import JoinReply, SyncReply, Turn
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.settings.groups import GROUP_INITIAL_REBALANCE_DELAY_MS

_NOTHING: Result[Entry, None] = Result()


def keep_session(turn: Turn[object], member: ClassicMember, timeout_ms: int | None = None) -> None:
    """Restart the session timer of a member that was just heard from."""
    delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    turn.after(turn.session_key(member.member_id), delay_ms, ClassicSessionEnded(turn.group.group_id, member.member_id))


def rebalance_or_complete(turn: Turn[object]) -> None:
    """Start a rebalance after a change, or complete the one in progress if all members have joined."""
    if turn.group.state is ClassicState.PREPARING:
        complete_if_ripe(turn)
    else:
        prepare(turn)


def complete_if_ripe(turn: Turn[object]) -> None:
    group = turn.group
    if group.state is ClassicState.PREPARING and not group.is_initial and group.has_all_joined:
        complete_join(turn)


def prepare(turn: Turn[object]) -> None:
    """Start a rebalance. Members that wait for an assignment of this generation are answered with an error."""
    if turn.group.state is ClassicState.COMPLETING:
        turn.group = turn.group.with_members(each._replace(assignment=b"") for each in turn.group.members.values())
        answer_syncs(turn, ErrorCode.REBALANCE_IN_PROGRESS)
    turn.cancel(turn.sync_key())
    is_initial = turn.group.is_empty
    turn.become(ClassicState.PREPARING)
    turn.group = replace(turn.group, pending_sync=frozenset(), is_initial=is_initial)
    if is_initial:
        delay_ms = turn.view.broker()[GROUP_INITIAL_REBALANCE_DELAY_MS]
        left_ms = max(turn.group.rebalance_timeout_ms - delay_ms, 0)
        turn.after(turn.join_key(), delay_ms, InitialDelayEnded(turn.group.group_id, delay_ms, left_ms))
    elif turn.group.has_all_joined:
        complete_join(turn)
    else:
        _schedule_join_end(turn)


def complete_join(turn: Turn[object]) -> None:
    """Form the next generation of the members that have joined; dynamic members that have not are removed."""
    turn.cancel(turn.join_key())
    members = turn.group.members.values()
    turn.remove(*(each.member_id for each in members if not each.is_awaiting_join and not each.is_static))
    leader = _joined_leader(turn.group)
    if leader is None and turn.group.members:
        # only static members are left: their sessions decide
        _schedule_join_end(turn, limits.ABSENT_MEMBERS_WAIT_MS_MIN)
    elif leader is None:
        _become_empty(turn)
    else:
        _begin_generation(turn, leader)


def _schedule_join_end(turn: Turn[object], shortest_ms: int = 0) -> None:
    delay_ms = max(turn.group.rebalance_timeout_ms, shortest_ms)
    turn.after(turn.join_key(), delay_ms, JoinPhaseEnded(turn.group.group_id))


def _joined_leader(group: ClassicGroup) -> str | None:
    """Return the leader if it has joined, else the first member that has."""
    assert group.leader is None or group.leader in group.members, f"{group.group_id}: {group.leader} is no member"
    if group.leader is not None and group.members[group.leader].is_awaiting_join:
        return group.leader
    return next((each.member_id for each in group.members.values() if each.is_awaiting_join), None)


def _become_empty(turn: Turn[object]) -> None:
    turn.become(ClassicState.EMPTY)
    turn.group = replace(
        turn.group,
        generation=turn.group.generation + 1,
        protocol=None,
        leader=None,
        is_initial=False,
        has_newcomers=False,
    ).with_subscriptions()
    turn.records.append(entry_of(turn.group))


def _begin_generation(turn: Turn[object], leader: str) -> None:
    group = turn.group
    turn.become(ClassicState.COMPLETING)
    turn.group = replace(
        turn.group,
        generation=group.generation + 1,
        protocol=group.elected_protocol(),
        leader=leader,
        is_initial=False,
        has_newcomers=False,
        pending_sync=frozenset(group.members),
    ).with_subscriptions()
    for member in turn.group.members.values():
        if member.is_awaiting_join:
            turn.answer_join(member.member_id, generation_reply(turn.group, member.member_id))
        keep_session(turn, member)
    turn.group = turn.group.with_members(
        each._replace(is_new=False, is_awaiting_join=False) for each in turn.group.members.values()
    )
    turn.after(
        turn.sync_key(), turn.group.rebalance_timeout_ms, SyncPhaseEnded(turn.group.group_id, turn.group.generation)
    )


def generation_reply(group: ClassicGroup, member_id: str) -> JoinReply:
    """Return the answer that tells a member about the present generation."""
    return JoinReply(
        member_id=member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        members=listed_members(group) if member_id == group.leader else (),
    )


def listed_members(group: ClassicGroup) -> tuple[tuple[str, str | None, bytes], ...]:
    """Return the list of members for the leader, which assigns partitions to them."""
    members = group.members.values()
    return tuple((each.member_id, each.instance_id, each.metadata(group.protocol)) for each in members)


def answer_syncs(turn: Turn[object], error: ErrorCode = ErrorCode.NONE) -> None:
    """Answer all members that wait for an assignment, with it or with the error."""
    group = turn.group
    for member in group.members.values():
        if member.is_awaiting_sync:
            turn.answer_sync(member.member_id, sync_reply(group, member) if not error else SyncReply(error))
            keep_session(turn, member)
    turn.group = group.with_members(each._replace(is_awaiting_sync=False) for each in group.members.values())


def sync_reply(group: ClassicGroup, member: ClassicMember) -> SyncReply:
    return SyncReply(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment)


def remove_pending_sync(turn: Turn[object], member_id: str) -> None:
    """Note that the member has asked for its assignment; cancel the timer when all have."""
    turn.group = replace(turn.group, pending_sync=turn.group.pending_sync - {member_id})
    if not turn.group.pending_sync:
        turn.cancel(turn.sync_key())


# --- timers


@dataclass(frozen=True, slots=True)
class ClassicSessionEnded:
    """Remove a member, or a pending one, that was not heard from for its session timeout."""

    group_id: str
    member_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ClassicGroup):
            return _NOTHING
        turn: Turn[None] = Turn(view, group, now_ms)
        member = group.members.get(self.member_id)
        if member is None and self.member_id not in group.pending:
            return _NOTHING
        # A member whose request is parked is not expected to send heartbeats. A new member cannot send any, and its
        # connection may have been closed long ago.
        if member is not None and not member.is_new and (member.is_awaiting_join or member.is_awaiting_sync):
            return _NOTHING
        turn.remove(self.member_id)
        if turn.group.state is ClassicState.PREPARING:
            if turn.group.has_all_joined:
                complete_join(turn)
        elif member is not None:
            prepare(turn)
        return turn.result()


@dataclass(frozen=True, slots=True)
class JoinPhaseEnded:
    """The rebalance timeout has passed: go on with the members that have joined."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ClassicGroup) or group.state is not ClassicState.PREPARING:
            return _NOTHING
        turn: Turn[None] = Turn(view, group, now_ms)
        complete_join(turn)
        return turn.result()


@dataclass(frozen=True, slots=True)
class InitialDelayEnded:
    """The delay of the first rebalance has passed; wait again if more members joined and there is time left."""

    group_id: str
    delay_ms: int
    left_ms: int

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ClassicGroup) or group.state is not ClassicState.PREPARING:
            return _NOTHING
        turn: Turn[None] = Turn(view, group, now_ms)
        if group.has_newcomers and self.left_ms > 0:
            turn.group = replace(group, has_newcomers=False)
            delay_ms = min(view.broker()[GROUP_INITIAL_REBALANCE_DELAY_MS], self.left_ms)
            left_ms = max(self.left_ms - self.delay_ms, 0)
            turn.after(turn.join_key(), delay_ms, InitialDelayEnded(self.group_id, delay_ms, left_ms))
        else:
            complete_join(turn)
        return turn.result()


@dataclass(frozen=True, slots=True)
class SyncPhaseEnded:
    """Remove members that joined this generation but did not ask for their assignment in time."""

    group_id: str
    generation: int

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ClassicGroup) or group.generation != self.generation or not group.pending_sync:
            return _NOTHING
        turn: Turn[None] = Turn(view, group, now_ms)
        turn.remove(*(each for each in group.members if each in group.pending_sync))
        prepare(turn)
        return turn.result()
