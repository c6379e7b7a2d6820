"""Removal of offsets: on request, with their group, with their topic, or after their retention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.group import SINCE_COMMIT, Group, GroupKind
from ottla.groups.offsets.entries import tombstone
from ottla.groups.offsets.store import NO_EXPIRY, CommittedOffset
from ottla.groups.offsets.walk import IsGone, WalkPosition, WalkStep, tombstone_bytes
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Answer, Parked, Result, Timer
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.settings.groups import OFFSETS_RETENTION_CHECK_INTERVAL_MS, OFFSETS_RETENTION_MINUTES

_MINUTE_MS = 60_000
_EXPIRY_TIMER = ("offsets", "expiry")


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """Replies with an ErrorCode for each of `partitions`, in their order."""

    group_id: str
    partitions: tuple[TopicPartition, ...]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, list[ErrorCode]]:
        group = view.state.groups.get(self.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_delete_offsets()
        codes: list[ErrorCode] = []
        records: list[Entry] = []
        offsets = view.state.offsets
        kept = offsets.of(self.group_id)
        for partition in self.partitions:
            if group.is_subscribed(partition.topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            codes.append(ErrorCode.NONE)
            if partition in kept or offsets.is_pending(self.group_id, partition):
                records.append(tombstone(self.group_id, partition))
        return Result(records, codes)


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Delete a group with all its offsets; refused while it has members.

    If it has too many offsets for one batch, the group is deleted first, which hides the offsets. Then their tombstones
    are written portion by portion; the reply waits for the last one.
    """

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_delete()
        offsets = view.state.offsets
        partitions = tuple(dict.fromkeys((*offsets.of(self.group_id), *offsets.pending(self.group_id))))
        rest = DeleteForgotten(self.group_id, partitions, ("forgotten", self.group_id, offsets.order))
        if rest.next_at == len(partitions):
            return Result([*(tombstone(self.group_id, each) for each in partitions), *group.tombstones()])
        return Result(
            group.tombstones(),
            Parked(rest.token),
            (Timer(rest.token, now_ms, rest),),
            notes=(Forgotten(self.group_id),),
        )


class Forgotten(NamedTuple):
    """A note: the offsets of a deleted group are no longer visible."""

    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteForgotten:
    """Write tombstones for the next portion of a deleted group's offsets, except those committed again since."""

    group_id: str
    partitions: tuple[TopicPartition, ...]
    token: tuple[str, str, int]
    at: int = 0

    @property
    def next_at(self) -> int:
        """The end of the portion that is deleted at once."""
        size_bytes = 0
        most = min(self.at + limits.OFFSETS_DELETED_AT_ONCE, len(self.partitions))
        for at in range(self.at, most):
            size_bytes += tombstone_bytes(self.group_id, self.partitions[at])
            if at > self.at and size_bytes > limits.JOURNAL_PORTION_BYTES:
                return at
        return most

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        offsets = view.state.offsets
        kept = offsets.of(self.group_id)
        next_at = self.next_at
        records = [
            tombstone(self.group_id, each)
            for each in self.partitions[self.at : next_at]
            if each not in kept and not offsets.is_pending(self.group_id, each)
        ]
        if next_at == len(self.partitions):
            return Result(records, answers=(Answer(self.token, None),))
        return Result(records, timers=(Timer(self.token, now_ms, replace(self, at=next_at)),))


@dataclass(frozen=True, slots=True)
class ForgetTopics:
    """Remove all offsets of deleted topics."""

    topics: frozenset[str]
    place: WalkPosition | None = None  # None: the beginning

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        step = WalkStep(view, self.place or WalkPosition(view.state.offsets.groups()))
        step.take(lambda _: self._is_gone, lambda _: ())
        if step.next is None:
            return Result(step.gone)
        return Result(step.gone, timers=(Timer(("offsets", self.topics), now_ms, replace(self, place=step.next)),))

    def _is_gone(self, partition: TopicPartition, _: CommittedOffset | None) -> bool:
        return partition.topic in self.topics


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """Remove offsets whose retention has passed, and empty groups that have no offsets left."""

    place: WalkPosition | None = None  # None: the beginning

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        groups = view.state.groups
        retention_ms = view.setting(OFFSETS_RETENTION_MINUTES) * _MINUTE_MS
        step = WalkStep(view, self.place or WalkPosition(tuple(groups)))

        def rest_of(group_id: str) -> Iterable[Entry]:
            return groups[group_id].tombstones() if groups[group_id].is_empty else ()

        step.take(lambda group_id: _outlived(view, groups.get(group_id), now_ms, retention_ms), rest_of)
        timer = expiry_timer(view, now_ms)
        if step.next is not None:
            timer = Timer(_EXPIRY_TIMER, now_ms, ExpireOffsets(step.next))
        return Result(step.gone, timers=(timer,))


def _outlived(view: GroupsView, group: Group | None, now_ms: int, retention_ms: int) -> IsGone | None:
    """Return the rule by which a group's offsets are too old; None to skip the group. Share groups are skipped: their
    progress is not stored here.
    """
    if group is None or group.kind is GroupKind.SHARE:
        return None
    since_ms = group.offsets_expire_since()
    if since_ms is None:
        return None if not group.is_empty else lambda *_: False

    def is_gone(partition: TopicPartition, committed: CommittedOffset | None) -> bool:
        return (
            committed is not None
            and _is_expired(committed, since_ms, now_ms, retention_ms)
            and not group.is_subscribed(partition.topic)
            and not view.state.offsets.is_pending(group.group_id, partition)
        )

    return is_gone


def _is_expired(committed: CommittedOffset, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if committed.expires_at_ms != NO_EXPIRY:
        return now_ms >= committed.expires_at_ms
    base_ms = committed.committed_at_ms if since_ms == SINCE_COMMIT else since_ms
    return now_ms - base_ms >= retention_ms


def expiry_timer(view: GroupsView, now_ms: int) -> Timer:
    """Return the timer of the next search for expired offsets."""
    return Timer(_EXPIRY_TIMER, now_ms + view.setting(OFFSETS_RETENTION_CHECK_INTERVAL_MS), ExpireOffsets())
