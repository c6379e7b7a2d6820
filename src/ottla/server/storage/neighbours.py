"""NodeNeighbours: how the replicas of a node read the cluster's metadata and report their changes
(`replica.neighbours`).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.cluster.state import ClusterState
from ottla.model.ids import BrokerEpoch
from ottla.replica.partition import Partition
from ottla.server.loop.watches import Watches


class NodeNeighbours:
    def __init__(
        self,
        *,
        state: Callable[[], ClusterState],
        lag_ms_max: int,
        steady_ms: Callable[[], int],
        changed: Callable[[Partition], None],
        watches: Watches,
        sync: Callable[[Partition], None],
        write: Callable[[Partition], None],
        sealed: Callable[[Partition], None],
        isr_may_change: Callable[[Partition], None],
    ) -> None:
        """`changed` notifies the waiters of a partition; `watches` has the followers that read it. `sync`, `write` and
        `sealed` request work from the threads of its data directory.
        """
        self._state = state
        self.lag_ms_max = lag_ms_max
        self.steady_ms = steady_ms
        self.moved = changed
        self.grew = watches.changed
        self.must_sync = sync
        self.must_write = write
        self.sealed = sealed
        self.isr_may_change = isr_may_change

    def broker_epoch(self, broker_id: int) -> BrokerEpoch | None:
        broker = self._state().brokers.get(broker_id)
        return broker.epoch if broker is not None and not broker.fenced else None

    def may_join(self, broker_id: int) -> bool:
        broker = self._state().brokers.get(broker_id)
        return broker is not None and broker.active
