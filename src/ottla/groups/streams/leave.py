"""How members leave: by themselves, or because nothing was heard of them in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.groups.modern.group import MemberState
from ottla.groups.streams.draft import StreamsDraft
from ottla.groups.streams.entries import group_entry, member_tombstones
from ottla.groups.streams.group import StreamsGroup, streams_group
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.notes import ShutdownAsked
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.group_settings import STREAMS_SESSION_TIMEOUT_MS

_SESSION, _REVOCATION = "streams session", "streams revocation"


def keep_session(draft: StreamsDraft, member_id: str) -> None:
    """The member was heard of now."""
    group_id = draft.group.group_id
    timeout_ms = draft.setting(STREAMS_SESSION_TIMEOUT_MS)
    draft.after((_SESSION, group_id, member_id), timeout_ms, StreamsSessionEnded(group_id, member_id))


def watch_revocation(draft: StreamsDraft, old: StreamsMember, new: StreamsMember) -> None:
    """Who must give tasks back has its rebalance timeout for it."""
    if new == old:
        return
    group_id = draft.group.group_id
    key = (_REVOCATION, group_id, new.member_id)
    if new.state is MemberState.UNREVOKED_PARTITIONS:
        draft.after(key, new.rebalance_timeout_ms, StreamsRevocationEnded(group_id, new.member_id, new.epoch))
    elif old.state is MemberState.UNREVOKED_PARTITIONS:
        draft.cancel(key)


def _remove(draft: StreamsDraft, member: StreamsMember, reply: Any = None) -> Result[Entry]:
    group = draft.group
    for name in (_SESSION, _REVOCATION):
        draft.cancel((name, group.group_id, member.member_id))
    draft.records += member_tombstones(group.group_id, member.member_id)
    draft.records.append(group_entry(group.group_id, group.facts()._replace(epoch=group.epoch + 1)))
    return draft.result(reply)


@dataclass(frozen=True, slots=True)
class StreamsLeave:
    """A heartbeat with epoch -1. Replies with the member's id."""

    group_id: str
    member_id: str
    wants_shutdown: bool = False

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry]:
        group = streams_group(view, self.group_id)
        draft = StreamsDraft(view, group, now_ms)
        member = group.member(self.member_id)
        if self.wants_shutdown:
            draft.notes.append(ShutdownAsked(self.group_id, self.member_id))
        return _remove(draft, member, self.member_id)


@dataclass(frozen=True, slots=True)
class StreamsSessionEnded:
    """Nothing was heard of a member for the session timeout."""

    group_id: str
    member_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry]:
        return _fence(view, self.group_id, self.member_id, now_ms)


@dataclass(frozen=True, slots=True)
class StreamsRevocationEnded:
    """A member did not confirm in time that it gave tasks back, and others wait for them."""

    group_id: str
    member_id: str
    epoch: int

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry]:
        return _fence(view, self.group_id, self.member_id, now_ms, self.epoch)


def _fence(view: GroupsView, group_id: str, member_id: str, now_ms: int, epoch: int | None = None) -> Result[Entry]:
    group = view.state.groups.get(group_id)
    member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
    if not isinstance(group, StreamsGroup) or member is None or epoch not in (None, member.epoch):
        return Result()
    return _remove(StreamsDraft(view, group, now_ms), member)
