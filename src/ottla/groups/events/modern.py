"""The events of a decision on a consumer, share or streams group, found in the records that it writes.

The three kinds have the same four types of records: of a member, of the group's epoch, of the epoch of its targets, and
of a member's reconciliation. A decision that writes none of them is no event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from ottla.groups.classic.arguments import JoinArguments
from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.leave import ClassicLeave
from ottla.groups.classic.turn import Became
from ottla.groups.consumer.classic_members import RejoinEnded
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import ConsumerHeartbeat
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.events.classic import SESSION_TIMEOUT
from ottla.groups.events.event import (
    NO_SETTING,
    NOBODY,
    UNKNOWN,
    Concerning,
    EventMember,
    GroupEvent,
    Happening,
    event_member,
    member_named,
    short,
)
from ottla.groups.events.notes import Happened, TargetReached, TargetsGiven
from ottla.groups.events.words import reading, reason_of, replaces
from ottla.groups.group import GroupKind
from ottla.groups.modern.group import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from ottla.groups.modern.timeouts import MemberTimedOut
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import ShareHeartbeat, ShareSessionEnded
from ottla.groups.share.member import ShareMember
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.heartbeat import StreamsHeartbeat
from ottla.groups.streams.member import StreamsMember
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.group_settings import CONSUMER_SESSION_TIMEOUT_MS, SHARE_SESSION_TIMEOUT_MS, STREAMS_SESSION_TIMEOUT_MS
from ottla.wire.journal import consumer_group, share_group, streams_group

_SESSIONS = {
    GroupKind.CONSUMER: CONSUMER_SESSION_TIMEOUT_MS,
    GroupKind.SHARE: SHARE_SESSION_TIMEOUT_MS,
    GroupKind.STREAMS: STREAMS_SESSION_TIMEOUT_MS,
}
_REBALANCE_TIMEOUT = "max.poll.interval.ms"
_Member: TypeAlias = ConsumerMember | ShareMember | StreamsMember | ClassicMember
AnyGroup: TypeAlias = ConsumerGroup | ShareGroup | StreamsGroup | ClassicGroup
_HEARTBEATS = (ConsumerHeartbeat, ShareHeartbeat, StreamsHeartbeat)


class _Record(Enum):
    MEMBER = 1
    EPOCH = 2
    TARGETS = 3
    CURRENT = 4


class _Role(NamedTuple):
    record: _Record
    stable: int = 0  # of a member's reconciliation: the number of the state in which it is complete


_ROLES: dict[type, _Role] = {
    consumer_group.ConsumerGroupMemberMetadataKey: _Role(_Record.MEMBER),
    consumer_group.ConsumerGroupMetadataKey: _Role(_Record.EPOCH),
    consumer_group.ConsumerGroupTargetAssignmentMetadataKey: _Role(_Record.TARGETS),
    consumer_group.ConsumerGroupCurrentMemberAssignmentKey: _Role(_Record.CURRENT),
    share_group.ShareGroupMemberMetadataKey: _Role(_Record.MEMBER),
    share_group.ShareGroupMetadataKey: _Role(_Record.EPOCH),
    share_group.ShareGroupTargetAssignmentMetadataKey: _Role(_Record.TARGETS),
    share_group.ShareGroupCurrentMemberAssignmentKey: _Role(_Record.CURRENT),
    streams_group.StreamsGroupMemberMetadataKey: _Role(_Record.MEMBER),
    streams_group.StreamsGroupMetadataKey: _Role(_Record.EPOCH),
    streams_group.StreamsGroupTargetAssignmentMetadataKey: _Role(_Record.TARGETS),
    streams_group.StreamsGroupCurrentMemberAssignmentKey: _Role(_Record.CURRENT, stable=1),
}


class GroupChange(Protocol):
    """A command to one group."""

    @property
    def group_id(self) -> str: ...


def modern_notes(
    view: GroupsView, command: GroupChange, before: AnyGroup | None, result: Result[Entry, object], now_ms: int
) -> Sequence[object]:
    """Return notes of what happened, in the order in which it did; all have the group's epoch after the decision."""
    reading = _Decision(view, command, before, now_ms)
    notes = list(reading.of(result))
    return [reading.dated(note) if isinstance(note, Happened | TargetReached) else note for note in notes]


class _Decision:
    """The records of one decision, read from the first to the last."""

    def __init__(self, view: GroupsView, command: GroupChange, before: AnyGroup | None, now_ms: int) -> None:
        self._view = view
        self._command = command
        self._group_id = command.group_id
        self._now_ms = now_ms
        self._was_classic = isinstance(before, ClassicGroup)
        self._kind = GroupKind.CONSUMER if before is None else before.kind
        self._before: Mapping[str, _Member] = {} if before is None else before.members
        self._members = dict.fromkeys(self._before)  # the members after the records so far
        self._gone: dict[str, _Member] = {}  # members whose tombstones were read, and that nobody has replaced
        self._epoch = self._target_epoch = UNKNOWN
        if before is not None and not isinstance(before, ClassicGroup):
            self._epoch, self._target_epoch = before.epoch, before.assignment_epoch

    def of(self, result: Result[Entry, object]) -> Iterator[object]:
        became = next((note.group for note in result.notes if isinstance(note, Became)), None)
        if became is not None:
            yield from self._downgrade(became)
            return
        if self._was_classic and self._before:
            yield self._told(Happening.UPGRADED)
        later: list[object] = []  # what follows from the changes of members
        for entry in result.records:
            role = _ROLES.get(type(entry.key))
            if role is None:
                continue
            if role.record is _Record.MEMBER:
                yield from self._member(entry)
            elif entry.value is not None:
                later += self._of_group(entry, role)
        for member in self._gone.values():
            yield self._removal(member)
        yield from later

    def _member(self, entry: Entry) -> Iterator[object]:
        member_id, old = entry.key.member_id, self._before.get(entry.key.member_id)
        if entry.value is None:
            self._members.pop(member_id, None)
            if old is not None:
                self._gone[member_id] = old
            return
        known = member_id in self._members
        self._members[member_id] = None
        member = _described(entry)
        if known:
            if isinstance(old, ConsumerMember | ShareMember):
                yield from self._changed(old, member, entry)
            return
        same = (each for each in self._gone.values() if member.instance_id and each.instance_id == member.instance_id)
        former = next(same, None)
        if former is not None:
            del self._gone[former.member_id]
            yield self._told(Happening.REPLACED, member, detail=replaces(former.member_id))
        else:
            reason = self._command.reason if isinstance(self._command, JoinArguments) else ""
            yield self._told(Happening.JOINED, member, detail=reason)

    def _changed(self, old: ConsumerMember | ShareMember, member: EventMember, entry: Entry) -> Iterator[object]:
        assert entry.value is not None, "tombstones are not asked for"
        words = [reading(old.subscribed_topics, entry.value.subscribed_topic_names)]
        if isinstance(old, ConsumerMember) and old.subscribed_regex != (entry.value.subscribed_topic_regex or ""):
            words.append(f"/{old.subscribed_regex}/ → /{entry.value.subscribed_topic_regex or ''}/")
        if any(words):
            yield self._told(Happening.SUBSCRIBED, member, detail=" ".join(filter(None, words)))

    def _of_group(self, entry: Entry, role: _Role) -> Iterator[object]:
        value = entry.value
        assert value is not None, "tombstones are not asked for"
        if role.record is _Record.EPOCH:
            self._epoch = value.epoch
            yield self._told(Happening.REBALANCE_BEGAN if self._members else Happening.EMPTY)
        elif role.record is _Record.TARGETS:
            self._target_epoch = value.assignment_epoch
            yield self._told(Happening.ASSIGNED)
            yield TargetsGiven(self._group_id, tuple(self._members))
        elif value.member_epoch == STATIC_LEAVE_EPOCH:
            member = self._before[entry.key.member_id]
            yield self._told(Happening.AWAY, event_member(member), self._session(member))
        else:
            old = self._before.get(entry.key.member_id)
            if old is not None and self._is_joining() and not isinstance(old, ClassicMember) and old.epoch > JOIN_EPOCH:
                yield self._told(Happening.REJOINED, event_member(old))
            if value.state == role.stable and value.member_epoch == self._target_epoch:
                yield TargetReached(self._group_id, entry.key.member_id, self._event(Happening.REBALANCE_ENDED))

    def _is_joining(self) -> bool:
        return isinstance(self._command, _HEARTBEATS) and self._command.epoch == JOIN_EPOCH

    def _removal(self, member: _Member) -> Happened:
        command, who = self._command, event_member(member)
        if isinstance(command, RejoinEnded) or (isinstance(command, MemberTimedOut) and command.of_rebalance):
            timeout_ms = UNKNOWN if isinstance(member, ShareMember) else member.rebalance_timeout_ms
            return self._told(Happening.TIMED_OUT, who, Concerning(_REBALANCE_TIMEOUT, timeout_ms))
        if isinstance(command, MemberTimedOut | ShareSessionEnded):
            return self._told(Happening.TIMED_OUT, who, self._session(member))
        detail = reason_of(command.leavers, member) if isinstance(command, ClassicLeave) else ""
        return self._told(Happening.LEFT, who, detail=detail)

    def _session(self, member: _Member) -> Concerning:
        if isinstance(member, ConsumerMember) and member.classic is not None:
            return Concerning(SESSION_TIMEOUT, member.classic.session_timeout_ms)
        setting = _SESSIONS[self._kind]
        return Concerning(setting.name, self._view.group(self._group_id)[setting])

    def _downgrade(self, after: ClassicGroup) -> Iterator[object]:
        self._epoch, self._members = after.generation, dict.fromkeys(after.members)
        for member_id, member in self._before.items():
            if member_id not in after.members:
                yield self._removal(member)
        yield self._told(Happening.DOWNGRADED)
        if after.state is not ClassicState.STABLE:
            yield self._told(Happening.REBALANCE_BEGAN)

    def _told(
        self,
        kind: Happening,
        member: EventMember = NOBODY,
        setting: Concerning = NO_SETTING,
        detail: str = "",
    ) -> Happened:
        event = self._event(kind)._replace(member=member, setting=setting, detail=short(detail))
        return Happened(self._group_id, event)

    def _event(self, kind: Happening) -> GroupEvent:
        return GroupEvent(self._now_ms, kind)

    def dated(self, note: Happened | TargetReached) -> Happened | TargetReached:
        """Return the note with the epoch and the number of members that were read last."""
        return note._replace(event=note.event._replace(epoch=self._epoch, members=len(self._members)))


def _described(entry: Entry) -> EventMember:
    """Return the member that a record describes."""
    value = entry.value
    assert value is not None, "tombstones describe nobody"
    instance_id = getattr(value, "instance_id", None)  # share groups have no static members
    return member_named(entry.key.member_id, instance_id, value.client_id, value.client_host)
