"""Endpoints: which member's endpoint can be queried for the state of which partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.groups.streams.configure import Configured
from ottla.groups.streams.member import StreamsMember, UserEndpoint
from ottla.groups.streams.tasks import Tasks, without_epochs
from ottla.groups.view import GroupTopics


class TopicShare(NamedTuple):
    """Partitions of a topic."""

    topic: str
    partitions: tuple[int, ...]


class EndpointShare(NamedTuple):
    """The partitions whose state one endpoint has."""

    endpoint: UserEndpoint
    active: tuple[TopicShare, ...]
    standby: tuple[TopicShare, ...]


def endpoint_shares(
    members: Iterable[StreamsMember], configured: Configured, topics: GroupTopics
) -> tuple[EndpointShare, ...]:
    """Return the partitions of all members that have an endpoint."""
    found: list[EndpointShare] = []
    for member in members:
        if member.endpoint is not None:
            owned = without_epochs(member.assigned)
            active, standby = _shares(owned.active, configured, topics), _shares(owned.standby, configured, topics)
            found.append(EndpointShare(member.endpoint, active, standby))
    return tuple(found)


def _shares(tasks: Tasks, configured: Configured, topics: GroupTopics) -> tuple[TopicShare, ...]:
    """Return the partitions of tasks. Of a topic with fewer partitions than the subtopology has tasks, only some tasks
    read.
    """
    found: list[TopicShare] = []
    for name in sorted(tasks):
        subtopology = configured.subtopologies.get(name)
        for topic in subtopology.inputs if subtopology is not None else ():
            info = topics.by_name(topic)
            if info is not None:
                found.append(TopicShare(topic, tuple(sorted(tasks[name])[: info.partitions])))
    return tuple(found)
