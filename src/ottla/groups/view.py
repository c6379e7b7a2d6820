"""GroupsView: what a command of the group coordinator may read while it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

from ottla.groups.state import GroupsState
from ottla.model.config import Config
from ottla.model.ids import BitSource
from ottla.model.setting import Setting

T = TypeVar("T")


class GroupTopic(NamedTuple):
    """A topic as assignors see it; `racks[i]` are the racks of partition i's replicas."""

    name: str
    id: bytes
    partitions: int
    racks: tuple[frozenset[str], ...] = ()


class GroupTopics(Protocol):
    """The cluster's topics."""

    def by_name(self, name: str) -> GroupTopic | None: ...

    def by_id(self, topic_id: bytes) -> GroupTopic | None: ...

    def names(self) -> Iterable[str]:
        """All names, in a stable order."""
        ...


@dataclass(frozen=True, slots=True)
class GroupsView:
    """The state, the topics, the present settings, and a source of random ids."""

    state: GroupsState
    topics: GroupTopics
    broker: Callable[[], Config]  # broker settings
    group: Callable[[str], Config]  # the settings of a group, by id (dynamic group configs over the broker's)
    rng: BitSource

    def setting(self, setting: Setting[T]) -> T:
        return self.broker()[setting]
