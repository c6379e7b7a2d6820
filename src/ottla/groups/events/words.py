"""The texts of events."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ottla.groups.classic.arguments import Leaver
from ottla.groups.events.event import AnyMember
from ottla.groups.view import GroupTopics

_BY_INSTANCE_ID = "removed by its instance id"


def reading(before: Collection[str], now: Collection[str]) -> str:
    """Return how a member's topics changed: `+orders -clicks`."""
    added, dropped = sorted(set(now) - set(before)), sorted(set(before) - set(now))
    return " ".join([*(f"+{name}" for name in added), *(f"-{name}" for name in dropped)])


def replaces(member_id: str) -> str:
    return f"in place of {member_id}"


def reason_of(leavers: Iterable[Leaver], member: AnyMember) -> str:
    """Return the reason that was given for the member's removal."""
    for leaver in leavers:
        if leaver.member_id == member.member_id:
            return leaver.reason
        if not leaver.member_id and leaver.instance_id == member.instance_id:
            return leaver.reason or _BY_INSTANCE_ID
    return ""


def topic_sizes(names: Iterable[str], topics: GroupTopics) -> str:
    """Return the topics with their present numbers of partitions: `orders=12 clicks=deleted`."""
    found = [(name, topics.by_name(name)) for name in sorted(names)]
    return " ".join(f"{name}={'deleted' if topic is None else topic.partitions}" for name, topic in found)
