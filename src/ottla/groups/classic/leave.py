"""ClassicLeave: remove members at once, at their own request or (static ones, by instance id) at an operator's."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.groups.classic.arguments import Leaver
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.rebalance import rebalance_or_complete
from ottla.groups.classic.turn import Turn
from ottla.groups.consumer import classic_members
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode


@dataclass(frozen=True, slots=True)
class ClassicLeave:
    """Replies with one ErrorCode for each leaver."""

    group_id: str
    leavers: tuple[Leaver, ...]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, tuple[ErrorCode, ...]]:
        group = view.state.groups.get(self.group_id)
        if isinstance(group, ConsumerGroup):
            return classic_members.leave(self.leavers, group, view, now_ms)
        if not isinstance(group, ClassicGroup):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        turn: Turn[tuple[ErrorCode, ...]] = Turn(view, group, now_ms)
        outcomes = tuple(_leave(turn, leaver) for leaver in self.leavers)
        if ErrorCode.NONE in outcomes and not turn.group.is_empty:
            rebalance_or_complete(turn)
        turn.reply = outcomes
        return turn.result()


def _leave(turn: Turn[object], leaver: Leaver) -> ErrorCode:
    member_id, instance_id, _ = leaver
    if not member_id:
        owner = None if instance_id is None else turn.group.static_member_id(instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        turn.remove(owner)
        return ErrorCode.NONE
    if member_id not in turn.group.pending:
        try:
            turn.group.check_member(member_id, instance_id)
        except ApiError as error:
            return error.code
    turn.remove(member_id)
    return ErrorCode.NONE
