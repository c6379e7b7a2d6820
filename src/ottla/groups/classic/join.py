"""Join: a client joins a group, or a member rejoins. The answer comes when the next generation has formed.

A new dynamic member is first given a member id to join with (JoinGroup v4+), so that a client whose connection breaks
while it waits does not leave a member without a client behind. A static member that joins without a member id replaces
its former member: if the group is Stable and the protocol stays the same, that causes no rebalance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ottla.groups.classic.arguments import JoinArguments
from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.journal import entry_of
from ottla.groups.classic.rebalance import (
    ClassicSessionEnded,
    generation_reply,
    keep_session,
    prepare,
    rebalance_or_complete,
)
from ottla.groups.classic.turn import JOIN, JoinReply, SyncReply, Turn
from ottla.groups.consumer import classic_members
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.group import Group, GroupKind
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BitSource, random_uuid
from ottla.model.settings.groups import GROUP_MAX_SIZE

# An empty group of these kinds may be replaced by a classic group of the same id.
_GIVES_WAY = (GroupKind.CONSUMER, GroupKind.STREAMS)


@dataclass(frozen=True, slots=True)
class Join(JoinArguments):
    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, JoinReply]:
        turn: Turn[JoinReply]
        found = view.state.groups.get(self.group_id)
        if isinstance(found, ClassicGroup):
            turn = Turn(view, found, now_ms)
            self._take_in(turn)
            return turn.result()
        if isinstance(found, ConsumerGroup) and not found.is_empty:
            return classic_members.join(self, found, view, now_ms)
        if found is not None and not _gives_way(found):
            return Result(reply=JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        if self.member_id:
            return Result(reply=JoinReply(ErrorCode.UNKNOWN_MEMBER_ID, self.member_id))
        turn = Turn(view, ClassicGroup.empty(self.group_id, now_ms), now_ms)
        if found is not None:
            turn.records.extend(found.tombstones())
        turn.records.append(entry_of(turn.group))
        self._take_in(turn)
        return turn.result()

    def _take_in(self, turn: Turn[JoinReply]) -> None:
        group = turn.group
        if not self._has_room(turn):
            turn.remove(self.member_id)
            turn.reply = JoinReply(ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not self._fits(group):
            turn.reply = JoinReply(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.member_id)
        elif self.member_id:
            self._known(turn)
        elif self.instance_id is not None:
            self._new_static(turn, self.instance_id)
        else:
            self._new_dynamic(turn)

    def _fits(self, group: ClassicGroup) -> bool:
        member = group.members.get(self.member_id)
        # nothing changed, so the other members need not be looked at
        if member is not None and member.protocols == self.protocols:
            return self.protocol_type == group.protocol_type
        return group.supports(self.protocol_type, self.protocols)

    def _has_room(self, turn: Turn[JoinReply]) -> bool:
        """Whether the group is not full. While members rejoin, only rejoined ones count, so that a too large group
        shrinks.
        """
        group = turn.group
        most = turn.view.broker()[GROUP_MAX_SIZE]
        member = group.members.get(self.member_id)
        if group.is_empty or len(group.members) < most:
            return True
        if group.state is ClassicState.PREPARING:
            return (member is not None and member.is_awaiting_join) or group.awaiting_join < most
        return member is not None

    # --- members without an id

    def _new_dynamic(self, turn: Turn[JoinReply]) -> None:
        member_id = new_member_id(self.client_id, turn.view.rng)
        if not self.needs_known_id:
            self._add(turn, member_id)
            return
        if len(turn.group.pending) >= limits.PENDING_MEMBERS_MAX:
            turn.remove(turn.group.pending[0])
        turn.group = replace(turn.group, pending=(*turn.group.pending, member_id))
        turn.after(turn.session_key(member_id), self.session_timeout_ms, ClassicSessionEnded(self.group_id, member_id))
        turn.reply = JoinReply(ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _new_static(self, turn: Turn[JoinReply], instance_id: str) -> None:
        member_id = new_member_id(instance_id, turn.view.rng)
        former_id = turn.group.static_member_id(instance_id)
        if former_id is None:
            self._add(turn, member_id)
        else:
            self._replace_static(turn, turn.group.members[former_id], member_id)

    def _add(self, turn: Turn[JoinReply], member_id: str) -> None:
        member = ClassicMember(
            member_id=member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=self.protocols,
            is_new=True,
            is_awaiting_join=True,
        )
        group = turn.group
        turn.group = replace(
            group,
            protocol_type=group.protocol_type if group.members else self.protocol_type,
            pending=tuple(each for each in group.pending if each != member_id),
            has_newcomers=group.has_newcomers or (group.state is ClassicState.PREPARING and group.is_initial),
        ).with_member(member)
        keep_session(turn, member, limits.NEW_MEMBER_JOIN_MS_MAX)
        turn.wait(JOIN, member_id)
        rebalance_or_complete(turn)

    def _replace_static(self, turn: Turn[JoinReply], former: ClassicMember, member_id: str) -> None:
        """A static member restarted: replace its former member, whose member id is fenced from now on."""
        leader = turn.group.leader
        if former.is_awaiting_join:
            turn.answer_join(former.member_id, JoinReply(ErrorCode.FENCED_INSTANCE_ID, former.member_id))
        if former.is_awaiting_sync:
            turn.answer_sync(former.member_id, SyncReply(ErrorCode.FENCED_INSTANCE_ID))
        member = self._updated(former._replace(member_id=member_id, is_new=False, is_awaiting_sync=False))
        turn.cancel(turn.session_key(former.member_id))
        keep_session(turn, member)
        turn.group = turn.group.with_successor(former.member_id, member)
        turn.wait(JOIN, member_id)
        if turn.group.state is not ClassicState.STABLE:
            rebalance_or_complete(turn)
        elif turn.group.elected_protocol() != turn.group.protocol:
            prepare(turn)
        else:
            self._carry_on(turn, member, leader)

    def _carry_on(self, turn: Turn[JoinReply], member: ClassicMember, former_leader: str | None) -> None:
        """Go on without a rebalance: write the new member id, and give the member the assignment of the former one."""
        turn.set_member(member._replace(is_awaiting_join=False))
        group = turn.group
        turn.records.append(entry_of(group))
        reply = generation_reply(group, member.member_id)
        if self.can_skip_assignment:
            turn.reply = reply._replace(skip_assignment=group.leader == member.member_id)
        else:
            # A client of an old version would assign if it knew that it leads: it is not told so.
            turn.reply = reply._replace(leader=former_leader or "", members=())

    # --- members with an id

    def _known(self, turn: Turn[JoinReply]) -> None:
        group = turn.group
        if self.member_id in group.pending:
            if self.instance_id is not None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Only a dynamic member is given its id in advance.")
            self._add(turn, self.member_id)
            return
        try:
            group.check_member(self.member_id, self.instance_id)
        except ApiError as error:
            turn.reply = JoinReply(error.code, self.member_id)
            return
        member = group.members[self.member_id]
        is_same = member.protocols == self.protocols
        is_leader = group.leader == self.member_id
        if group.state is ClassicState.PREPARING or not is_same or (group.state is ClassicState.STABLE and is_leader):
            # A leader that joins again asks for a rebalance: it has noticed a change that the coordinator cannot see.
            self._rejoin(turn, member)
        elif group.state is ClassicState.STABLE:
            turn.reply = generation_reply(group, self.member_id)._replace(members=())
        else:
            turn.reply = generation_reply(group, self.member_id)  # it missed the answer to its first JoinGroup

    def _rejoin(self, turn: Turn[JoinReply], member: ClassicMember) -> None:
        if member.is_awaiting_join:
            turn.answer_join(member.member_id, JoinReply(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        turn.set_member(self._updated(member))
        turn.wait(JOIN, member.member_id)
        rebalance_or_complete(turn)

    def _updated(self, member: ClassicMember) -> ClassicMember:
        return member._replace(
            protocols=self.protocols,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            is_awaiting_join=True,
        )


def _gives_way(group: Group) -> bool:
    return group.is_empty and group.kind in _GIVES_WAY


def new_member_id(prefix: str, rng: BitSource) -> str:
    """Return a new member id `prefix-uuid`; the prefix is the client id or the instance id."""
    digits = random_uuid(rng).hex()
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f"{prefix}-{uuid}"
