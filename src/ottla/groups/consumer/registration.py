"""The consumer groups' part of the group coordinator's machine (see `groups/machine.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.consumer.apply import KEYS, apply_entry
from ottla.groups.consumer.classic_members import Rejoining, note_rejoining
from ottla.groups.consumer.draft import ConsumerDraft
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.leave import TIMEOUTS, watch_revocation
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.regexes import RegexesSeen, note_seen
from ottla.groups.group import Group
from ottla.groups.part import GroupsPart
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.model.group_settings import CONSUMER_SESSION_TIMEOUT_MS


def _loaded(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    """After loading, start the members' session and revocation timers anew."""
    timers: list[Timer] = []
    for group in groups:
        if isinstance(group, ConsumerGroup):
            draft = ConsumerDraft(view, group, now_ms)
            for member in group.members.values():
                TIMEOUTS.keep_session(draft, member.member_id, draft.setting(CONSUMER_SESSION_TIMEOUT_MS))
                watch_revocation(draft, ConsumerMember(member.member_id), member)
            timers += draft.timers
    return Result(timers=timers)


PART = GroupsPart(dict.fromkeys(KEYS, apply_entry), {RegexesSeen: note_seen, Rejoining: note_rejoining}, _loaded)
