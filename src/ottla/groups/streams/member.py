"""StreamsMember: one member of a streams group, at one moment. Immutable; `apply` replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.modern.group import JOIN_EPOCH, MemberState
from ottla.groups.streams.tasks import NOTHING_OWNED, OwnedTasks


class UserEndpoint(NamedTuple):
    """The address at which the member's process answers queries about its state."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member: first its own description, then the state of its reconciliation."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()  # in order of their keys

    epoch: int = JOIN_EPOCH
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: OwnedTasks = NOTHING_OWNED
    pending_revocation: OwnedTasks = NOTHING_OWNED

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """Always empty: the group's topology says which topics are read."""
        return frozenset()

    @property
    def uses_classic_protocol(self) -> bool:
        """Always False: streams groups have no classic protocol."""
        return False

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch
