"""Neighbours: what a replica knows of the world around it, and whom it tells. The server fulfils it; `ALONE` is the
world of a partition without other replicas.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from ottla.model.ids import BrokerEpoch

# What is told of: the partition itself, which this module does not know.
PartitionT = TypeVar("PartitionT", contravariant=True)

_LAG_MS_MAX = 30_000


class OtherBrokers(Protocol):
    """What the ISR depends on besides the followers' fetches."""

    @property
    def lag_ms_max(self) -> int:
        """replica.lag.time.max.ms: who was not caught up for that long is not in sync."""

    def broker_epoch(self, broker_id: int) -> BrokerEpoch | None:
        """Of a broker that is registered and not fenced."""

    def may_join(self, broker_id: int) -> bool:
        """Whether a broker may be in an ISR: neither fenced nor shutting down."""


class Neighbours(OtherBrokers, Protocol[PartitionT]):
    def steady_ms(self) -> int:
        """Now, by a clock that nobody sets: what followers' lag is measured by."""

    def moved(self, partition: PartitionT) -> None:
        """High watermark, low watermark or role changed: whoever waits for the partition must look again."""

    def grew(self, partition: PartitionT, *, hurry: bool) -> None:
        """Followers have something to fetch; without `hurry` it is only worth telling with their next answer."""

    def must_sync(self, partition: PartitionT) -> None:
        """What a durable partition holds counts when it is on disk, and nobody writes to it now."""

    def writes_later(self) -> bool:
        """Whether there is somebody to write what is appended while the disk is slow."""

    def must_write(self, partition: PartitionT) -> None:
        """Something of its log waits to be written."""

    def sealed(self, partition: PartitionT) -> None:
        """A segment of its log has ended and should be on disk before long."""

    def isr_may_change(self, partition: PartitionT) -> None:
        """`partition.isr_proposal` has something to propose."""


class _Alone:
    lag_ms_max = _LAG_MS_MAX

    def steady_ms(self) -> int:
        return 0

    def broker_epoch(self, _broker_id: int) -> BrokerEpoch | None:
        return None

    def may_join(self, _broker_id: int) -> bool:
        return False

    def moved(self, partition: object) -> None: ...

    def grew(self, partition: object, *, hurry: bool) -> None: ...

    def must_sync(self, partition: object) -> None: ...

    def writes_later(self) -> bool:
        return False

    def must_write(self, partition: object) -> None: ...

    def sealed(self, partition: object) -> None: ...

    def isr_may_change(self, partition: object) -> None: ...


ALONE: Neighbours[object] = _Alone()
