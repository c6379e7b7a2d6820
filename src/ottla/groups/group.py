"""Group: the interface of all kinds of groups, whatever protocol their members use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.machine.keyed import Entry
from ottla.model.ids import TopicPartition

# In place of a time: the retention of each offset counts from its own commit.
SINCE_COMMIT = -1


class GroupKind(Enum):
    """Kafka's group types, by the names its protocol uses."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Committer(NamedTuple):
    """The sender of an offset commit: a member, or (epoch < 0, no member id) an admin client or a standalone
    consumer.
    """

    member_id: str
    instance_id: str | None
    epoch: int  # generation id or member epoch
    request_version: int
    transactional: bool = False
    # The committed partitions as topic id and partition; called only if the epoch is an older one.
    partitions: Callable[[], Iterable[tuple[bytes, int]]] = tuple
    # The same by topic name.
    places: Callable[[], Iterable[TopicPartition]] = tuple


class Group(Protocol):
    """One group. Immutable to its readers: only `apply` and `note` of the machine change or replace it."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> GroupKind: ...

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups: `consumer`, `connect`, `share`, …"""
        ...

    @property
    def state_name(self) -> str:
        """Kafka's name of the state: Empty, Stable, PreparingRebalance, Assigning, Reconciling, Dead, …"""
        ...

    @property
    def members(self) -> Sized:
        """The group's members, whose type depends on the kind."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        ...

    def check_commit(self, by: Committer) -> None:
        """Raise the ApiError for a commit that is not allowed."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise the ApiError for a member that may not read the committed offsets."""
        ...

    def check_delete(self) -> None:
        """Raise NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND if the group may not be deleted now."""
        ...

    def check_delete_offsets(self) -> None:
        """Raise the ApiError if single offsets may not be deleted now."""
        ...

    def is_subscribed(self, topic: str) -> bool:
        """Whether any member reads the topic: then its offsets neither expire nor may they be deleted."""
        ...

    def offsets_expire_since(self) -> int | None:
        """Return the time (ms) from which the retention of its offsets counts; SINCE_COMMIT: from each offset's commit;
        None: they do not expire now. Offsets of topics it is subscribed to never expire.
        """
        ...

    def tombstones(self) -> Sequence[Entry]:
        """Return the entries that delete the group itself (its offsets are deleted separately)."""
        ...
