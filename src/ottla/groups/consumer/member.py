"""ConsumerMember: one member of a consumer group, at one moment. Immutable; `apply` replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ottla.groups.assign.spec import Partitions
from ottla.groups.modern.group import JOIN_EPOCH, NO_EPOCH, MemberState

# Topic id → partition → the epoch in which the member got it. Topics without partitions have no entry.
Owned = Mapping[bytes, Mapping[int, int]]
NO_OWNED: Owned = MappingProxyType({})


class ClassicProtocol(NamedTuple):
    """A protocol that a member of the classic protocol offers, with its metadata."""

    name: str
    metadata: bytes


class ClassicSide(NamedTuple):
    """The classic part of a member that uses JoinGroup and SyncGroup; its preferred protocol comes first."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member: first its own description, then the state of its reconciliation."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicSide | None = None  # None: it uses the new protocol

    epoch: int = JOIN_EPOCH
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=lambda: NO_OWNED)
    pending_revocation: Owned = field(default_factory=lambda: NO_OWNED)

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def describes_itself_as(self, other: ConsumerMember) -> bool:
        """Whether both have the same description, that is, everything but the state of the reconciliation."""
        return (
            self.subscribed_topics == other.subscribed_topics
            and self.subscribed_regex == other.subscribed_regex
            and self.client_id == other.client_id
            and self.client_host == other.client_host
            and self.instance_id == other.instance_id
            and self.rack_id == other.rack_id
            and self.rebalance_timeout_ms == other.rebalance_timeout_ms
            and self.server_assignor == other.server_assignor
            and self.classic == other.classic
        )


def without_epochs(owned: Owned) -> Partitions:
    return {topic: frozenset(partitions) for topic, partitions in owned.items()}


def with_epoch(partitions: Partitions, epoch: int) -> Owned:
    return {topic: dict.fromkeys(sorted(each), epoch) for topic, each in partitions.items()}
