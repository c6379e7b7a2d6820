"""ShareMember, and StatePartitions: the partitions whose state the share coordinator keeps for a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions
from ottla.groups.modern.group import JOIN_EPOCH, NO_EPOCH, MemberState


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member. `epoch` is that of its target; a heartbeat with `previous_epoch` is a repetition, others are fenced."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    epoch: int = JOIN_EPOCH
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Partitions = field(default_factory=lambda: NO_PARTITIONS)

    @property
    def instance_id(self) -> str | None:
        """Always None: share groups have no static members."""
        return None


class SharedTopic(NamedTuple):
    """Partitions of one topic."""

    name: str
    partitions: frozenset[int]


SharedTopics = Mapping[bytes, SharedTopic]  # by the topic's id
NO_TOPICS: SharedTopics = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """Partitions whose state is being initialised, is initialised, or is being deleted at the share coordinator."""

    initializing: SharedTopics = field(default_factory=lambda: NO_TOPICS)
    initialized: SharedTopics = field(default_factory=lambda: NO_TOPICS)
    deleting: frozenset[bytes] = frozenset()
