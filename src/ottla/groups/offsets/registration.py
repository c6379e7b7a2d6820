"""The offsets' part of the group coordinator's machine."""

from ottla.groups.offsets.entries import apply_commit, apply_marker
from ottla.groups.offsets.remove import Forgotten
from ottla.groups.part import GroupsPart
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Marker
from ottla.wire.journal.consumer_offsets import LegacyOffsetCommitKey, OffsetCommitKey


def _forget(view: GroupsView, note: Forgotten) -> None:
    view.state.offsets.forget(note.group_id)


PART = GroupsPart(
    {OffsetCommitKey: apply_commit, LegacyOffsetCommitKey: apply_commit, Marker: apply_marker}, {Forgotten: _forget}
)
