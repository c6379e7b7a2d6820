"""The offsets' part of the group coordinator's machine."""

from collections.abc import Sequence

from ottla.groups.group import Group
from ottla.groups.offsets.entries import apply_commit, apply_marker
from ottla.groups.offsets.remove import Forgotten
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry, Marker
from ottla.machine.kit import Result
from ottla.wire.journal.consumer_offsets import LegacyOffsetCommitKey, OffsetCommitKey

APPLY = {OffsetCommitKey: apply_commit, LegacyOffsetCommitKey: apply_commit, Marker: apply_marker}


def _forget(view: GroupsView, note: Forgotten) -> None:
    view.state.offsets.forget(note.group_id)


NOTE = {Forgotten: _forget}


def LOADED(view: GroupsView, groups: Sequence[Group], now_ms: int) -> Result[Entry, None]:
    return Result()
