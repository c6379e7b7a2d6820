"""Sync: a member asks for its assignment, and the leader sends everyone's. The answers wait until the group's record is
written.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.groups.classic.arguments import SyncArguments
from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.journal import entry_of
from ottla.groups.classic.rebalance import answer_syncs, prepare, remove_pending_sync, sync_reply
from ottla.groups.classic.turn import SYNC, SyncReply, Turn
from ottla.groups.consumer import classic_members
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode


@dataclass(frozen=True, slots=True)
class AssignmentRefused:
    """The leader's assignment could not be written: answer all waiting members with an error, and start another
    rebalance.
    """

    group_id: str
    generation: int

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ClassicGroup) or group.generation != self.generation:
            return Result()
        if group.state is not ClassicState.COMPLETING:
            return Result()
        turn: Turn[None] = Turn(view, group, now_ms)
        answer_syncs(turn, ErrorCode.UNKNOWN_SERVER_ERROR)
        prepare(turn)
        return turn.result()


@dataclass(frozen=True, slots=True)
class Sync(SyncArguments):
    """A SyncGroup request; `assignments` (by member id) counts only from the leader."""

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, SyncReply]:
        group = view.state.groups.get(self.group_id)
        if isinstance(group, ConsumerGroup):
            return classic_members.sync(self, group, view, now_ms)
        if not isinstance(group, ClassicGroup) or group.is_empty:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._check(group)
        if group.state is ClassicState.PREPARING:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        turn: Turn[SyncReply] = Turn(view, group, now_ms)
        remove_pending_sync(turn, self.member_id)
        member = group.members[self.member_id]
        if group.state is ClassicState.STABLE:
            turn.reply = sync_reply(group, member)
        else:
            self._wait(turn, member)
            if self.member_id == group.leader:
                self._assign(turn)
        return turn.result()

    def _check(self, group: ClassicGroup) -> None:
        group.check_member(self.member_id, self.instance_id)
        if self.generation != group.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        type_differs = self.protocol_type is not None and self.protocol_type != group.protocol_type
        name_differs = self.protocol_name is not None and self.protocol_name != group.protocol
        if type_differs or name_differs:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _wait(self, turn: Turn[SyncReply], member: ClassicMember) -> None:
        if member.is_awaiting_sync:
            turn.answer_sync(self.member_id, SyncReply(ErrorCode.REBALANCE_IN_PROGRESS))
        turn.set_member(member._replace(is_awaiting_sync=True))
        turn.wait(SYNC, self.member_id)

    def _assign(self, turn: Turn[SyncReply]) -> None:
        """Store the assignments and make the group Stable. A member without an assignment from the leader gets an empty
        one.
        """
        members = turn.group.members.values()
        turn.group = turn.group.with_members(
            each._replace(assignment=self.assignments.get(each.member_id, b"")) for each in members
        )
        turn.records.append(entry_of(turn.group))
        answer_syncs(turn)
        turn.group = turn.group.to(ClassicState.STABLE)
