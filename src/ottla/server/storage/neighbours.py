"""NodeNeighbours: what the replicas of a node know of the cluster around them, and whom they tell of their changes
(`replica.neighbours`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ottla.replica.partition import Partition
from ottla.server.loop.watches import Watches

if TYPE_CHECKING:
    from ottla.cluster.state import ClusterState

_LAG_MS_MAX = 30_000


class LeaderQuota(Protocol):
    """leader.replication.throttled.rate: what this node sends to followers that are not in sync."""

    def holds_back(self, topic: str, index: int) -> bool: ...

    def sent(self, topic: str, index: int, size_bytes: int) -> None: ...


class NodeNeighbours:
    def __init__(self, changed: Callable[[Partition], None], watches: Watches) -> None:
        """`changed` has all who wait for a partition look at it again; `watches` knows which followers read it."""
        self.moved = changed
        self.grew = watches.changed
        self.lag_ms_max = _LAG_MS_MAX
        self.quota: LeaderQuota | None = None
        self.steady_ms: Callable[[], int] = lambda: 0
        self._state: Callable[[], ClusterState] | None = None
        self._consider: Callable[[Partition], None] = _ignore
        self._sync: Callable[[Partition], None] = _ignore
        self._write: Callable[[Partition], None] | None = None
        self.on_sealed: Callable[[Partition], None] = _ignore

    def attach(
        self,
        *,
        state: Callable[[], ClusterState],
        consider: Callable[[Partition], None],
        lag_ms_max: int,
        steady_ms: Callable[[], int],
        sync: Callable[[Partition], None] | None = None,
        write: Callable[[Partition], None] | None = None,
        quota: LeaderQuota | None = None,
    ) -> None:
        """The node serves: whom to tell what. Before, partitions are opened and nobody waits for them."""
        self._state, self._consider = state, consider
        self.steady_ms = steady_ms
        self.lag_ms_max, self.quota, self._sync = lag_ms_max, quota, sync or _ignore
        self._write = write

    def broker_epoch(self, broker_id: int) -> int | None:
        broker = self._state().brokers.get(broker_id) if self._state is not None else None
        return broker.epoch if broker is not None and not broker.fenced else None

    def may_join(self, broker_id: int) -> bool:
        broker = self._state().brokers.get(broker_id) if self._state is not None else None
        return broker is not None and broker.active

    def must_sync(self, partition: Partition) -> None:
        self._sync(partition)

    def writes_later(self) -> bool:
        return self._write is not None

    def must_write(self, partition: Partition) -> None:
        assert self._write is not None, "nothing waits before there is somebody to write it"
        self._write(partition)

    def sealed(self, partition: Partition) -> None:
        self.on_sealed(partition)

    def isr_may_change(self, partition: Partition) -> None:
        self._consider(partition)


def _ignore(_: Partition) -> None:
    """Until the node serves."""
