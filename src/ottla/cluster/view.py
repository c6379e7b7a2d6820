"""MetadataView: what a command may read while it decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ottla.cluster.entities import Broker
from ottla.cluster.sessions import BrokerSessions
from ottla.cluster.state import ClusterState
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BitSource, BrokerEpoch
from ottla.model.node_config import NodeConfig
from ottla.model.resources import ResourceType


def _unknown_offset() -> int:
    raise AssertionError("this view is of no journal")


class MetadataQuorum(Protocol):
    """What is known of those who keep the journal."""

    @property
    def kraft_version(self) -> int: ...

    @property
    def voters(self) -> Collection[int]: ...

    def upgrade_refusal(self, level: int) -> str | None:
        """Why kraft.version cannot be that."""


class Alone:
    """A journal that nobody else keeps."""

    kraft_version = 0
    voters: Collection[int] = ()

    def upgrade_refusal(self, level: int) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class MetadataView:
    """The state, this node's configuration as it is now (for the defaults in it), a source of ids, where the next
    record will lie, what is known of brokers by hearsay, and who keeps the journal.
    """

    state: ClusterState
    node_id: int
    config: Callable[[], NodeConfig]
    rng: BitSource
    next_offset: Callable[[], int] = _unknown_offset
    sessions: BrokerSessions = field(default_factory=BrokerSessions)
    quorum: MetadataQuorum = field(default_factory=Alone)

    @property
    def defaults(self) -> Config:
        """The broker settings of this node."""
        return self.config().broker

    def topic_config(self, name: str) -> Config:
        """The settings of a topic."""
        return self.config().topic(self.state.config(ResourceType.TOPIC, name))

    def active(self, replicas: Iterable[int]) -> tuple[int, ...]:
        """Those replicas whose broker can lead now, in their order."""
        brokers = self.state.brokers
        return tuple(id for id in replicas if id in brokers and brokers[id].active)

    def directories(self, replicas: Iterable[int]) -> tuple[bytes, ...]:
        """Where each replica will lie."""
        return tuple(self.state.brokers[id].default_directory for id in replicas)

    def checked_broker(self, broker_id: int, epoch: BrokerEpoch) -> Broker:
        """The broker that sent a request with this epoch; refuses one that was registered anew since."""
        broker = self.state.brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if broker.epoch != epoch:
            raise ApiError(
                ErrorCode.STALE_BROKER_EPOCH, f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
            )
        return broker
