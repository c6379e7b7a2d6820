"""The offsets' part of the group coordinator's machine."""

from ottla.groups.offsets.entries import apply_commit, apply_marker
from ottla.groups.offsets.remove import expiry_timer
from ottla.groups.view import View
from ottla.machine.keyed import Entry, Marker
from ottla.machine.kit import Result
from ottla.wire.journal.consumer_offsets import LegacyOffsetCommitKey, OffsetCommitKey

APPLY = {OffsetCommitKey: apply_commit, LegacyOffsetCommitKey: apply_commit, Marker: apply_marker}
NOTE: dict[type, object] = {}


def LOADED(view: View, now_ms: int) -> Result[Entry]:
    return Result(timers=(expiry_timer(view, now_ms),))
