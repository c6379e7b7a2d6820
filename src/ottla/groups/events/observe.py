"""What is worth remembering about a decision of the group coordinator's machine.

`observed` looks at a decision from outside, by the type of its command, and adds notes about it to the result: the
machines of the kinds of groups know nothing of events. The notes are carried out with the rest of the result, so only
what was written down has happened. A command of another type (a commit, say), and a heartbeat that changes nothing,
costs one look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar, cast

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.join import Join
from ottla.groups.classic.leave import ClassicLeave
from ottla.groups.classic.rebalance import ClassicSessionEnded, InitialDelayEnded, JoinPhaseEnded, SyncPhaseEnded
from ottla.groups.classic.sync import AssignmentRefused, Sync
from ottla.groups.classic.turn import Became, JoinReply
from ottla.groups.consumer.classic_members import RejoinEnded
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import ConsumerHeartbeat
from ottla.groups.consumer.leave import ConsumerLeave
from ottla.groups.consumer.regexes import ResolveRegexes
from ottla.groups.events.classic import classic_events, joining
from ottla.groups.events.event import UNKNOWN, Concerning, EventMember, GroupEvent, Happening, member_named, short
from ottla.groups.events.modern import GroupChange, modern_notes
from ottla.groups.events.notes import Happened
from ottla.groups.events.words import topic_sizes
from ottla.groups.group import GroupKind
from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.timeouts import MemberTimedOut
from ottla.groups.modern.topics_changed import TopicsChanged
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import ShareHeartbeat, ShareSessionEnded
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.heartbeat import FirstAssignment, StreamsHeartbeat
from ottla.groups.streams.leave import StreamsLeave
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.groups import GROUP_CONSUMER_MAX_SIZE, GROUP_MAX_SIZE, GROUP_STREAMS_MAX_SIZE
from ottla.model.settings.share import GROUP_SHARE_MAX_SIZE

ReplyT = TypeVar("ReplyT")
_Notes: TypeAlias = Sequence[object]
_Observer: TypeAlias = Callable[[GroupsView, GroupChange, Result[Entry, object], int], _Notes]

_SIZES = {
    GroupKind.CLASSIC: GROUP_MAX_SIZE,
    GroupKind.CONSUMER: GROUP_CONSUMER_MAX_SIZE,
    GroupKind.SHARE: GROUP_SHARE_MAX_SIZE,
    GroupKind.STREAMS: GROUP_STREAMS_MAX_SIZE,
}
# Errors that refuse a client, with the kind of the event.
_REFUSALS = {
    ErrorCode.GROUP_MAX_SIZE_REACHED: Happening.REFUSED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: Happening.REFUSED,
    ErrorCode.UNRELEASED_INSTANCE_ID: Happening.REFUSED,
    ErrorCode.FENCED_INSTANCE_ID: Happening.FENCED,
    ErrorCode.FENCED_MEMBER_EPOCH: Happening.FENCED,
}


def observed(view: GroupsView, command: object, result: Result[Entry, ReplyT], now_ms: int) -> Result[Entry, ReplyT]:
    """Return the result with notes of what happened."""
    observe = _OBSERVERS.get(type(command))
    if observe is not None:
        notes = observe(view, cast("GroupChange", command), result, now_ms)
    elif isinstance(command, TopicsChanged):
        notes = list(_concerned(view, command.names, now_ms))
    else:
        return result
    return result._replace(notes=[*result.notes, *notes]) if notes else result


def refused(view: GroupsView, command: object, error: ApiError, now_ms: int) -> Result[Entry, object]:
    """Return the same refusal with a note of it, if it is worth remembering; else raise it."""
    if error.code not in _REFUSALS or not isinstance(command, ConsumerHeartbeat | ShareHeartbeat | StreamsHeartbeat):
        raise error
    instance_id = command.instance_id if isinstance(command, ConsumerHeartbeat) else None
    member = member_named(command.member_id, instance_id, command.client_id, command.client_host)
    return Result(reply=error, notes=[_refusal(view, command.group_id, error.code, member, now_ms)])


def _refusal(view: GroupsView, group_id: str, code: ErrorCode, member: EventMember, now_ms: int) -> Happened:
    group = view.state.groups.get(group_id)
    setting = Concerning()
    if code is ErrorCode.GROUP_MAX_SIZE_REACHED:
        size = _SIZES[GroupKind.CLASSIC if group is None else group.kind]
        setting = Concerning(size.name, view.setting(size))
    members = UNKNOWN if group is None else len(group.members)
    event = GroupEvent(now_ms, _REFUSALS[code], _epoch_of(group), members, member, setting, code.name)
    return Happened(group_id, event)


def _epoch_of(group: object) -> int:
    if isinstance(group, ClassicGroup):
        return group.generation
    return group.epoch if isinstance(group, ModernGroup) else UNKNOWN


def _of_classic(view: GroupsView, command: GroupChange, result: Result[Entry, object], now_ms: int) -> _Notes:
    found: object = view.state.groups.get(command.group_id)
    if isinstance(found, ModernGroup) and not found.is_empty:
        return _of_modern(view, command, result, now_ms)
    before = found if isinstance(found, ClassicGroup) else ClassicGroup.empty(command.group_id, now_ms)
    notes: list[object] = []
    after = next((note.group for note in reversed(result.notes) if isinstance(note, Became)), None)
    if after is not None:
        notes += (Happened(command.group_id, each) for each in classic_events(command, before, after, now_ms))
    return [*notes, *_of_refused_join(view, command, result, now_ms)]


def _of_modern(view: GroupsView, command: GroupChange, result: Result[Entry, object], now_ms: int) -> _Notes:
    if not result.records:
        return _of_refused_join(view, command, result, now_ms)
    found: object = view.state.groups.get(command.group_id)
    before = found if isinstance(found, ConsumerGroup | ShareGroup | StreamsGroup | ClassicGroup) else None
    return modern_notes(view, command, before, result, now_ms)


def _of_refused_join(view: GroupsView, command: GroupChange, result: Result[Entry, object], now_ms: int) -> _Notes:
    reply = result.reply
    if not isinstance(reply, JoinReply) or reply.error not in _REFUSALS or not isinstance(command, Join):
        return ()
    return [_refusal(view, command.group_id, reply.error, joining(command), now_ms)]


def _concerned(view: GroupsView, names: frozenset[str], now_ms: int) -> Iterator[Happened]:
    """Yield an event for each group with members that reads one of these topics."""
    for group_id, group in view.state.groups.items():
        read = _topics_of(group)
        if group.members and not names.isdisjoint(read):
            detail = short(topic_sizes(names & read, view.topics))
            event = GroupEvent(now_ms, Happening.TOPICS_CHANGED, _epoch_of(group), len(group.members), detail=detail)
            yield Happened(group_id, event)


def _topics_of(group: object) -> frozenset[str]:
    if isinstance(group, ClassicGroup):
        return group.subscribed_topics or frozenset()
    return group.subscribed_names() if isinstance(group, ModernGroup) else frozenset()


_OBSERVERS: dict[type, _Observer] = {
    **dict.fromkeys(
        (
            Join,
            Sync,
            AssignmentRefused,
            ClassicLeave,
            ClassicSessionEnded,
            JoinPhaseEnded,
            InitialDelayEnded,
            SyncPhaseEnded,
        ),
        _of_classic,
    ),
    **dict.fromkeys(
        (
            ConsumerHeartbeat,
            ConsumerLeave,
            MemberTimedOut,
            RejoinEnded,
            ResolveRegexes,
            ShareHeartbeat,
            ShareSessionEnded,
            StreamsHeartbeat,
            StreamsLeave,
            FirstAssignment,
        ),
        _of_modern,
    ),
}
