"""MemberTimeouts: the removal of members that are not heard from in time.

Consumer and streams groups have the same two timeouts: the session timeout of a member, and the timeout of a member
that was told to revoke partitions (tasks) and has not confirmed it, while others wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ottla.groups.modern.draft import GroupDraft
from ottla.groups.modern.group import MemberState
from ottla.groups.modern.reconciled import ReconciledMember
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result


class GroupWithMembers(Protocol):
    @property
    def group_id(self) -> str: ...

    @property
    def members(self) -> Mapping[str, ReconciledMember]: ...


GroupT = TypeVar("GroupT", bound=GroupWithMembers)


@dataclass(frozen=True, slots=True, eq=False)
class MemberTimeouts(Generic[GroupT]):
    """The timeouts of one kind of group. `session` and `revocation` are the names of its timers, `remove` removes the
    member with an id.
    """

    group_type: type[GroupT]
    session: str
    revocation: str
    remove: Callable[[GroupsView, GroupT, str, int], Result[Entry, None]]

    def keep_session(self, draft: GroupDraft[GroupT], member_id: str, timeout_ms: int) -> None:
        """Restart the session timer of a member that was just heard from."""
        draft.after((self.session, draft.group.group_id, member_id), timeout_ms, self.end_of(draft, member_id))

    def watch_revocation(self, draft: GroupDraft[GroupT], old: ReconciledMember, new: ReconciledMember) -> None:
        """Start the revocation timer (the rebalance timeout) if the member must revoke something; cancel it when it
        has.
        """
        if new == old:
            return
        key = (self.revocation, draft.group.group_id, new.member_id)
        if new.state is MemberState.UNREVOKED_PARTITIONS:
            end = self.end_of(draft, new.member_id, new.epoch, of_rebalance=True)
            draft.after(key, new.rebalance_timeout_ms, end)
        elif old.state is MemberState.UNREVOKED_PARTITIONS:
            draft.cancel(key)

    def end_of(
        self, draft: GroupDraft[GroupT], member_id: str, epoch: int | None = None, *, of_rebalance: bool = False
    ) -> MemberTimedOut[GroupT]:
        """Return the command of a member's timer, of its session or of a rebalance."""
        return MemberTimedOut(self, draft.group.group_id, member_id, epoch, of_rebalance)


@dataclass(frozen=True, slots=True)
class MemberTimedOut(Generic[GroupT]):
    """Remove the member, if it is still there and, if an `epoch` is given, has not moved on to another epoch.

    `of_rebalance`: not its session ended, but its rebalance timeout.
    """

    timeouts: MemberTimeouts[GroupT]
    group_id: str
    member_id: str
    epoch: int | None = None
    of_rebalance: bool = False

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group: object = view.state.groups.get(self.group_id)
        if not isinstance(group, self.timeouts.group_type):
            return Result()
        member = group.members.get(self.member_id)
        if member is None or self.epoch not in (None, member.epoch):
            return Result()
        return self.timeouts.remove(view, group, self.member_id, now_ms)
