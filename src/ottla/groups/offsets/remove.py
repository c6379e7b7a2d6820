"""Offsets that go: deleted by somebody, with their group, with their topic, or because nobody wanted them for long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ottla.groups.group import SINCE_COMMIT, Group, GroupKind
from ottla.groups.offsets.entries import tombstone
from ottla.groups.offsets.store import NO_EXPIRY, Committed
from ottla.groups.view import View
from ottla.machine.keyed import Entry, encode
from ottla.machine.kit import Result, Timer
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition

_MINUTE_MS = 60_000
_EXPIRY_TIMER = ("offsets", "expiry")
_RECORD_OVERHEAD_BYTES = 20


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    """Replies with an ErrorCode for each of `partitions`, in their order."""

    group_id: str
    partitions: tuple[TopicPartition, ...]

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
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
    """The group with all its offsets; only without members."""

    group_id: str

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        group = view.state.groups.get(self.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        group.check_delete()
        return Result([*_all_offsets(view, self.group_id), *group.tombstones()])


def _all_offsets(view: View, group_id: str) -> Iterable[Entry]:
    offsets = view.state.offsets
    partitions = dict.fromkeys((*offsets.of(group_id), *offsets.pending(group_id)))
    return (tombstone(group_id, partition) for partition in partitions)


@dataclass(frozen=True, slots=True)
class ForgetTopics:
    """Topics were deleted: nobody can go on reading them from where they were."""

    topics: frozenset[str]

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        offsets = view.state.offsets
        forgotten = (
            tombstone(group_id, partition)
            for group_id in offsets.groups()
            for partition in dict.fromkeys((*offsets.of(group_id), *offsets.pending(group_id)))
            if partition.topic in self.topics
        )
        records, is_all = _portion(forgotten)
        return Result(records, timers=() if is_all else (Timer(("offsets", self.topics), now_ms, self),))


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """Offsets that outlived their retention, and groups of which nothing is left then."""

    def decide(self, view: View, now_ms: int) -> Result[Entry]:
        records, is_all = _portion(_outlived(view, now_ms))
        timer = expiry_timer(view, now_ms) if is_all else Timer(_EXPIRY_TIMER, now_ms, self)
        return Result(records, timers=(timer,))


def _portion(entries: Iterable[Entry]) -> tuple[list[Entry], bool]:
    """As many as are well below the largest batch that a log takes, and whether those are all."""
    size_bytes = 0
    portion: list[Entry] = []
    for entry in entries:
        size_bytes += len(encode(entry)[0]) + _RECORD_OVERHEAD_BYTES
        if portion and size_bytes > limits.JOURNAL_PORTION_BYTES:
            return portion, False
        portion.append(entry)
    return portion, True


def _outlived(view: View, now_ms: int) -> Iterator[Entry]:
    """A group goes after all of its offsets; a share group stays: what it has accomplished is not among them."""
    retention_ms = view.setting("offsets.retention.minutes") * _MINUTE_MS
    for group_id, group in view.state.groups.items():
        if group.kind is GroupKind.SHARE:
            continue
        expired = _expired(view, group, now_ms, retention_ms)
        yield from (tombstone(group_id, partition) for partition in expired)
        nothing_left = len(expired) == len(view.state.offsets.of(group_id))
        if nothing_left and group.is_empty and not view.state.offsets.has_pending(group_id):
            yield from group.tombstones()


def _expired(view: View, group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
    since_ms = group.offsets_expire_since()
    if since_ms is None:
        return []
    offsets = view.state.offsets
    return [
        partition
        for partition, committed in offsets.of(group.group_id).items()
        if _is_expired(committed, since_ms, now_ms, retention_ms)
        and not group.is_subscribed(partition.topic)
        and not offsets.is_pending(group.group_id, partition)
    ]


def _is_expired(committed: Committed, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if committed.expires_at_ms != NO_EXPIRY:
        return now_ms >= committed.expires_at_ms
    base_ms = committed.committed_at_ms if since_ms == SINCE_COMMIT else since_ms
    return now_ms - base_ms >= retention_ms


def expiry_timer(view: View, now_ms: int) -> Timer:
    """When to look for expired offsets next."""
    return Timer(_EXPIRY_TIMER, now_ms + view.setting("offsets.retention.check.interval.ms"), ExpireOffsets())
