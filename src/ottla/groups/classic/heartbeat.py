"""ClassicHeartbeat: a member reports that it is alive; the answer tells it when it has to rejoin."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.groups.classic.arguments import HeartbeatArguments
from ottla.groups.classic.group import ClassicGroup, ClassicState
from ottla.groups.classic.rebalance import keep_session
from ottla.groups.classic.turn import Turn
from ottla.groups.consumer import classic_members
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode


@dataclass(frozen=True, slots=True)
class ClassicHeartbeat(HeartbeatArguments):
    """Replies with an ErrorCode; a heartbeat that is answered with REBALANCE_IN_PROGRESS extends the session, too."""

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ErrorCode]:
        group = view.state.groups.get(self.group_id)
        if isinstance(group, ConsumerGroup):
            return classic_members.heartbeat(self, group, view, now_ms)
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.check_member(self.member_id, self.instance_id)
        if self.generation != group.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        turn: Turn[ErrorCode] = Turn(view, group, now_ms)
        keep_session(turn, group.members[self.member_id])
        is_preparing = group.state is ClassicState.PREPARING
        turn.reply = ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE
        return turn.result()
