"""The part of the group coordinator's machine that remembers events."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.groups.events.notes import GroupsTakenOver, Happened, TargetReached, TargetsGiven
from ottla.groups.group import Group
from ottla.groups.part import GroupsPart
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result


def _happened(view: GroupsView, note: Happened) -> None:
    view.state.events.add(note.group_id, note.event)


def _given(view: GroupsView, note: TargetsGiven) -> None:
    view.state.events.expect(note.group_id, note.member_ids)


def _reached(view: GroupsView, note: TargetReached) -> None:
    view.state.events.reached(note.group_id, note.member_id, note.event)


def _taken_over(view: GroupsView, note: GroupsTakenOver) -> None:
    view.state.events.loaded_ms = note.at_ms


def _loaded(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    return Result(notes=[GroupsTakenOver(now_ms)])


PART = GroupsPart(
    {}, {Happened: _happened, TargetsGiven: _given, TargetReached: _reached, GroupsTakenOver: _taken_over}, _loaded
)
