"""The events of a decision on a classic group, found by comparing the group before and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ottla.groups.classic.arguments import JoinArguments
from ottla.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.join import Join
from ottla.groups.classic.leave import ClassicLeave
from ottla.groups.classic.rebalance import ClassicSessionEnded
from ottla.groups.classic.subscription import topics_of
from ottla.groups.classic.sync import AssignmentRefused
from ottla.groups.events.event import Concerning, EventMember, GroupEvent, Happening, event_member, member_named, short
from ottla.groups.events.words import reading, reason_of, replaces

SESSION_TIMEOUT = "session.timeout.ms"
# The client's setting of the rebalance timeout, by the protocol type of its group.
_REBALANCE_TIMEOUT = {CONSUMER_PROTOCOL_TYPE: "max.poll.interval.ms"}
_OTHER_REBALANCE_TIMEOUT = "rebalance.timeout.ms"

_NONE: frozenset[str] = frozenset()
_FORMING = (ClassicState.PREPARING, ClassicState.COMPLETING)


def classic_events(command: object, before: ClassicGroup, after: ClassicGroup, now_ms: int) -> Iterator[GroupEvent]:
    """Yield the events in the order in which they happened."""
    began = _begins(before, after)
    template = GroupEvent(now_ms, Happening.JOINED, after.generation, len(after.members))
    for kind, member, setting, detail in _of_members(command, before, after, began=began):
        yield template._replace(kind=kind, member=event_member(member), setting=setting, detail=short(detail))
    if began:
        yield template._replace(kind=Happening.REBALANCE_BEGAN, detail=_why(command))
    elif after.is_empty and not before.is_empty:
        yield template._replace(kind=Happening.EMPTY)
    if after.state is ClassicState.STABLE and before.state is not ClassicState.STABLE:
        yield template._replace(kind=Happening.REBALANCE_ENDED, detail=short(after.protocol or ""))


def _begins(before: ClassicGroup, after: ClassicGroup) -> bool:
    if before.state is ClassicState.PREPARING or after.state not in _FORMING:
        return False
    return before.state is not after.state or after.generation > before.generation


def _why(command: object) -> str:
    return "the leader's assignment could not be stored" if isinstance(command, AssignmentRefused) else ""


_Told: TypeAlias = tuple[Happening, ClassicMember, Concerning, str]


def _of_members(command: object, before: ClassicGroup, after: ClassicGroup, *, began: bool) -> Iterator[_Told]:
    if before.members is after.members:
        return
    gone = _news(after.members, before.members)
    if isinstance(command, Join):
        yield from _of_join(command, before, after, gone, began=began)
    for member in gone.values():
        yield _removal(command, before, member)


def _of_join(
    command: Join, before: ClassicGroup, after: ClassicGroup, gone: dict[str, ClassicMember], *, began: bool
) -> Iterator[_Told]:
    """Yield what became of the member that joins; whom it replaces is taken out of `gone`."""
    gone.pop(command.member_id, None)  # it was refused, which is an event of its own
    for member_id, member in _news(before.members, after.members).items():
        former = next(
            (each for each in gone.values() if member.is_static and each.instance_id == member.instance_id), None
        )
        if former is None:
            yield Happening.JOINED, member, Concerning(), command.reason
        else:
            del gone[former.member_id]
            yield Happening.REPLACED, member, Concerning(), replaces(former.member_id)
        assert member_id == member.member_id
    old, new = before.members.get(command.member_id), after.members.get(command.member_id)
    if old is None or new is None:
        return
    # Most members join again with what they sent before, which need not be read to know that.
    topics, now = (_NONE, _NONE) if old.protocols[:1] == new.protocols[:1] else (_topics(old), _topics(new))
    if topics != now:
        yield Happening.SUBSCRIBED, new, Concerning(), reading(topics, now)
    elif began:
        yield Happening.REJOINED, new, Concerning(), command.reason


def _news(before: Mapping[str, ClassicMember], after: Mapping[str, ClassicMember]) -> dict[str, ClassicMember]:
    """Return the members that are only in `after`, in their order; this is done for each of many that join."""
    if after.keys() <= before.keys():
        return {}
    return {key: each for key, each in after.items() if key not in before}


def _topics(member: ClassicMember) -> frozenset[str]:
    """Return the topics that the member reads; none if its metadata are not a consumer's."""
    return frozenset(topics_of(member.protocols[0].metadata) or ()) if member.protocols else frozenset()


def _removal(command: object, group: ClassicGroup, member: ClassicMember) -> _Told:
    if isinstance(command, ClassicLeave):
        return Happening.LEFT, member, Concerning(), reason_of(command.leavers, member)
    if isinstance(command, ClassicSessionEnded) and command.member_id == member.member_id:
        return Happening.TIMED_OUT, member, Concerning(SESSION_TIMEOUT, member.session_timeout_ms), ""
    return (
        Happening.TIMED_OUT,
        member,
        Concerning(rebalance_timeout(group.protocol_type), group.rebalance_timeout_ms),
        "",
    )


def rebalance_timeout(protocol_type: str) -> str:
    """Return the name of the client's setting that is its rebalance timeout."""
    return _REBALANCE_TIMEOUT.get(protocol_type, _OTHER_REBALANCE_TIMEOUT)


def joining(command: JoinArguments) -> EventMember:
    """Return who sent a JoinGroup."""
    return member_named(command.member_id, command.instance_id, command.client_id, command.client_host)
