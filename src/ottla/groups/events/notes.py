"""Notes about events: they change what the coordinator remembers, and nothing that it decides on."""

from __future__ import annotations

from typing import NamedTuple

from ottla.groups.events.event import GroupEvent


class Happened(NamedTuple):
    """An event of a group."""

    group_id: str
    event: GroupEvent


class TargetsGiven(NamedTuple):
    """These members have new targets."""

    group_id: str
    member_ids: tuple[str, ...]


class TargetReached(NamedTuple):
    """The member has reached its target; `event` is told if it was the last one."""

    group_id: str
    member_id: str
    event: GroupEvent


class GroupsTakenOver(NamedTuple):
    """The coordinator took over its groups."""

    at_ms: int
