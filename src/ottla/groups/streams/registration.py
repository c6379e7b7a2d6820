"""The streams groups' part of the group coordinator's machine (see `groups/machine.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.group import Group
from ottla.groups.part import GroupsPart
from ottla.groups.streams.apply import KEYS, apply_entry
from ottla.groups.streams.draft import StreamsDraft
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.leave import TIMEOUTS, keep_session
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.notes import NOTE
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer


def _loaded(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    """After loading, start the members' session and revocation timers anew."""
    timers: list[Timer] = []
    for group in groups:
        if isinstance(group, StreamsGroup):
            draft = StreamsDraft(view, group, now_ms)
            for member in group.members.values():
                keep_session(draft, member.member_id)
                TIMEOUTS.watch_revocation(draft, StreamsMember(member.member_id), member)
            timers += draft.timers
    return Result(timers=timers)


PART = GroupsPart(dict.fromkeys(KEYS, apply_entry), NOTE, _loaded)
