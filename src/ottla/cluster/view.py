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


def _unknown_time() -> int:
    raise AssertionError("this view has no clock")


class MetadataQuorum(Protocol):
    """What commands may know of the quorum that keeps the journal."""

    @property
    def kraft_version(self) -> int: ...

    @property
    def voters(self) -> Collection[int]: ...

    def upgrade_refusal(self, level: int) -> str | None:
        """Return why kraft.version cannot be raised to `level`; None if it can."""


class Alone:
    """The quorum of a journal with a single keeper."""

    kraft_version = 0
    voters: Collection[int] = ()

    def upgrade_refusal(self, level: int) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class MetadataView:
    """The state, this node's current configuration (for its defaults), a source of random ids, the offset of the next
    record, the brokers' sessions, and the quorum that keeps the journal.

    The time of day is for times that are stored: the `now_ms` of decisions only measures intervals.
    """

    state: ClusterState
    node_id: int
    config: Callable[[], NodeConfig]
    rng: BitSource
    next_offset: Callable[[], int] = _unknown_offset
    sessions: BrokerSessions = field(default_factory=BrokerSessions)
    quorum: MetadataQuorum = field(default_factory=Alone)
    time_of_day_ms: Callable[[], int] = _unknown_time

    @property
    def defaults(self) -> Config:
        """The broker settings of this node."""
        return self.config().broker

    def topic_config(self, name: str) -> Config:
        """The settings of a topic."""
        return self.config().topic(self.state.config(ResourceType.TOPIC, name))

    def active(self, replicas: Iterable[int]) -> tuple[int, ...]:
        """Return those replicas whose brokers may lead now, in their order."""
        brokers = self.state.brokers
        return tuple(id for id in replicas if id in brokers and brokers[id].active)

    def directories(self, replicas: Iterable[int]) -> tuple[bytes, ...]:
        """Return the directory in which each new replica will lie."""
        return tuple(self.state.brokers[id].default_directory for id in replicas)

    def checked_broker(self, broker_id: int, epoch: BrokerEpoch) -> Broker:
        """Return the broker that sent a request with this epoch; refuse it if the broker registered anew since."""
        broker = self.state.brokers.get(broker_id)
        if broker is None:
            raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if broker.epoch != epoch:
            raise ApiError(
                ErrorCode.STALE_BROKER_EPOCH, f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
            )
        return broker
