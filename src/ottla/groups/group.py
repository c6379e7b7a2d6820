"""What every kind of group can be asked, whatever protocol its members speak."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.machine.keyed import Entry
from ottla.model.ids import TopicPartition

# In place of a moment: the retention of an offset counts from its own commit.
SINCE_COMMIT = -1


class GroupKind(Enum):
    """Kafka's group types, by the names its protocol uses."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """Who commits offsets: as a member, or (epoch < 0, no member id) as an admin or a standalone consumer."""

    member_id: str
    instance_id: str | None
    epoch: int  # generation id or member epoch
    request_version: int
    transactional: bool = False
    # What is committed, as topic id and partition; asked only when the epoch is an older one.
    partitions: Callable[[], Iterable[tuple[bytes, int]]] = tuple
    # The same by names.
    places: Callable[[], Iterable[TopicPartition]] = tuple


class Group(Protocol):
    """One group. Immutable to its readers: only `apply` and `note` of the machine change or replace it."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> GroupKind: ...

    @property
    def protocol_type(self) -> str:
        """What ListGroups shows: `consumer`, `connect`, `share`, …"""
        ...

    @property
    def state_name(self) -> str:
        """Kafka's name of the state: Empty, Stable, PreparingRebalance, Assigning, Reconciling, Dead, …"""
        ...

    @property
    def members(self) -> Sized:
        """Of whatever sort they are."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        ...

    def check_commit(self, by: Committer) -> None:
        """Raises the ApiError that refuses this committer."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises the ApiError that refuses to tell committed offsets to this member."""
        ...

    def check_delete(self) -> None:
        """Raises NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND if the group may not be deleted now."""
        ...

    def check_delete_offsets(self) -> None:
        """Raises the ApiError that refuses to delete single offsets now."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether any member reads the topic: then its offsets neither expire nor may be deleted."""
        ...

    def offsets_expire_since(self) -> int | None:
        """The moment (ms) that the retention of its offsets counts from; SINCE_COMMIT: each from its own commit; None:
        they do not expire now. Topics it is subscribed to are exempt in any case."""
        ...

    def tombstones(self) -> Sequence[Entry]:
        """The entries that delete the group itself (its offsets are deleted apart)."""
        ...
