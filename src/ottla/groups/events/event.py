"""GroupEvent: one thing that happened to a group, as its coordinator saw it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from ottla.model import limits

UNKNOWN = -1  # in place of a number


class Happening(Enum):
    """The kinds of events, by the names that OttlaDescribeGroupEvents uses."""

    JOINED = "joined"
    REJOINED = "rejoined"  # a member of the group joined again: it lost its place, or wants a rebalance
    LEFT = "left"
    AWAY = "away"  # a static member left and is expected back
    TIMED_OUT = "timed_out"
    REPLACED = "replaced"  # a static member came back under another member id; the former one is fenced
    FENCED = "fenced"  # a member was told to give up its partitions and to join again
    REFUSED = "refused"  # a client was not let into the group
    SUBSCRIBED = "subscription_changed"
    TOPICS_CHANGED = "topics_changed"
    REBALANCE_BEGAN = "rebalance_began"
    ASSIGNED = "assigned"  # the members have new targets
    REBALANCE_ENDED = "rebalance_ended"
    EMPTY = "empty"  # the last member is gone
    UPGRADED = "upgraded"  # from a classic group to a consumer group
    DOWNGRADED = "downgraded"


class EventMember(NamedTuple):
    """The member that an event is about."""

    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""


NOBODY = EventMember()


class Concerning(NamedTuple):
    """The name of the setting that an event follows from, with its value; no name if there is none."""

    name: str = ""
    value: int = UNKNOWN


NO_SETTING = Concerning()


class GroupEvent(NamedTuple):
    """One event. `epoch` is the group's generation or epoch after it, `members` the number of members then. `times`:
    how often the same happened in a row, the last time at `at_ms`.
    """

    at_ms: int
    kind: Happening
    epoch: int = UNKNOWN
    members: int = UNKNOWN
    member: EventMember = NOBODY
    setting: Concerning = NO_SETTING
    detail: str = ""  # the reason that a client gave, or what changed
    duration_ms: int = UNKNOWN  # of a rebalance that ended
    times: int = 1

    def repeats(self, other: GroupEvent) -> bool:
        """Whether the same happened to the same member before."""
        return self._replace(at_ms=other.at_ms, times=other.times) == other


class AnyMember(Protocol):
    """The common properties of the members of all kinds of groups."""

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...


def event_member(member: AnyMember) -> EventMember:
    return member_named(member.member_id, member.instance_id, member.client_id, member.client_host)


def member_named(member_id: str, instance_id: str | None, client_id: str, client_host: str) -> EventMember:
    """Return the member with texts that are short enough to be kept."""
    instance_id = None if instance_id is None else short(instance_id)
    return EventMember(short(member_id), instance_id, short(client_id), short(client_host.removeprefix("/")))


def short(text: str) -> str:
    """Return the text, cut at the bound: clients choose it."""
    most = limits.GROUP_EVENT_TEXT_MAX
    return text if len(text) <= most else f"{text[: most - 1]}…"
