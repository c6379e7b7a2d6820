"""How members leave a streams group: at their own request, or after a timeout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from ottla.groups.modern.timeouts import MemberTimeouts
from ottla.groups.streams.draft import StreamsDraft
from ottla.groups.streams.entries import RECORDS, group_entry
from ottla.groups.streams.group import StreamsGroup, streams_group
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.notes import ShutdownAsked
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.group_settings import STREAMS_SESSION_TIMEOUT_MS

ReplyT = TypeVar("ReplyT")


def _remove(draft: StreamsDraft, member: StreamsMember, reply: ReplyT) -> Result[Entry, ReplyT]:
    group = draft.group
    for name in (TIMEOUTS.session, TIMEOUTS.revocation):
        draft.cancel((name, group.group_id, member.member_id))
    draft.records += RECORDS.member_tombstones(group.group_id, member.member_id)
    draft.records.append(group_entry(group.group_id, group.facts()._replace(epoch=group.epoch + 1)))
    return draft.result(reply)


@dataclass(frozen=True, slots=True)
class StreamsLeave:
    """A heartbeat with epoch -1. Replies with the member's id."""

    group_id: str
    member_id: str
    wants_shutdown: bool = False

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, str]:
        group = streams_group(view, self.group_id)
        draft = StreamsDraft(view, group, now_ms)
        member = group.member(self.member_id)
        if self.wants_shutdown:
            draft.notes.append(ShutdownAsked(self.group_id, self.member_id))
        return _remove(draft, member, self.member_id)


TIMEOUTS = MemberTimeouts(
    StreamsGroup,
    "streams session",
    "streams revocation",
    lambda view, group, member_id, now_ms: _remove(StreamsDraft(view, group, now_ms), group.member(member_id), None),
)


def keep_session(draft: StreamsDraft, member_id: str) -> None:
    """Restart the session timer of a member that was just heard from."""
    TIMEOUTS.keep_session(draft, member_id, draft.setting(STREAMS_SESSION_TIMEOUT_MS))
