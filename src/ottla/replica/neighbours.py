"""Neighbours: the port through which a replica asks about other brokers and reports its own changes. The server
implements it.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from ottla.model.ids import BrokerEpoch

# The type of the partition that changes are reported for; this module must not import it.
PartitionT = TypeVar("PartitionT", contravariant=True)


class OtherBrokers(Protocol):
    """What the ISR depends on besides the followers' fetches: the other brokers' state."""

    @property
    def lag_ms_max(self) -> int:
        """replica.lag.time.max.ms: a follower that was not caught up for that long is not in sync."""

    def broker_epoch(self, broker_id: int) -> BrokerEpoch | None:
        """Return the epoch of a registered broker that is not fenced; None for any other broker."""

    def may_join(self, broker_id: int) -> bool:
        """Whether a broker may be in an ISR: neither fenced nor shutting down."""


class Neighbours(OtherBrokers, Protocol[PartitionT]):
    def steady_ms(self) -> int:
        """Return the time of a clock that is never adjusted; the lag of followers is measured by it."""

    def moved(self, partition: PartitionT) -> None:
        """High watermark, low watermark or role changed: requests that wait for the partition must be tried again."""

    def grew(self, partition: PartitionT, *, hurry: bool) -> None:
        """Followers have something to fetch; without `hurry` it is enough to tell them with their next answer."""

    def must_sync(self, partition: PartitionT) -> None:
        """A durable partition has records that count only when they are synced, and no write to it is under way: sync
        it.
        """

    def must_write(self, partition: PartitionT) -> None:
        """Some appended bytes of this partition's log wait to be written."""

    def sealed(self, partition: PartitionT) -> None:
        """A segment of this partition's log is complete and should be synced before long."""

    def isr_may_change(self, partition: PartitionT) -> None:
        """`partition.isr_proposal` has something to propose."""
