"""The classic groups' part of the group coordinator's machine (see `groups/machine.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.journal import apply_group
from ottla.groups.classic.rebalance import keep_session, prepare
from ottla.groups.classic.turn import Became, Turn
from ottla.groups.group import Group
from ottla.groups.part import GroupsPart
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result, Timer
from ottla.model.settings.groups import GROUP_MAX_SIZE
from ottla.wire.journal.consumer_offsets import GroupMetadataKey


def _note(view: GroupsView, note: Became) -> None:
    view.state.groups[note.group.group_id] = note.group


def _loaded(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    """After loading, groups keep their generation, and the members' sessions start now."""
    timers: list[Timer] = []
    notes: list[object] = []
    for group in groups:
        if isinstance(group, ClassicGroup) and group.members:
            turn: Turn[None] = Turn(view, group, now_ms)
            for member in group.members.values():
                keep_session(turn, member)
            if len(group.members) > view.broker()[GROUP_MAX_SIZE]:
                prepare(turn)  # the setting was lowered
            result = turn.result()
            timers.extend(result.timers)
            notes.extend(result.notes)
    return Result(timers=timers, notes=notes)


PART = GroupsPart({GroupMetadataKey: apply_group}, {Became: _note}, _loaded)
