"""View: what a command may read while it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ottla.cluster.entities import UNASSIGNED_DIRECTORY, Broker
from ottla.cluster.state import ClusterState
from ottla.model.config import Config
from ottla.model.ids import BitSource
from ottla.model.node_config import NodeConfig


@dataclass(frozen=True, slots=True)
class View:
    """The state, this node's configuration as it is now (for the defaults in it), and a source of ids."""

    state: ClusterState
    node_id: int
    config: Callable[[], NodeConfig]
    rng: BitSource

    @property
    def defaults(self) -> Config:
        """The broker settings of this node."""
        return self.config().broker

    def active(self, replicas: Iterable[int]) -> tuple[int, ...]:
        """Those replicas whose broker can lead now, in their order."""
        brokers = self.state.brokers
        return tuple(id for id in replicas if id in brokers and is_active(brokers[id]))

    def directories(self, replicas: Iterable[int]) -> tuple[bytes, ...]:
        """Where each replica will lie: known when its broker has one directory, else chosen by the broker later."""
        brokers = self.state.brokers
        return tuple(
            brokers[id].directories[0] if len(brokers[id].directories) == 1 else UNASSIGNED_DIRECTORY for id in replicas
        )


def is_active(broker: Broker) -> bool:
    return not broker.fenced and not broker.in_controlled_shutdown
