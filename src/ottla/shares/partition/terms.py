"""Types of a share-partition: states of a record, acknowledgement types, rules, and results of operations.

    AVAILABLE ──acquire──▶ ACQUIRED ──accept──▶ ACKNOWLEDGED
        ▲                     │ ├──reject, gap──▶ ARCHIVED
        └──release, lock over─┘ └──release, lock over, at the delivery limit──▶ ARCHIVED

A record that was never acquired has no state; it counts as AVAILABLE with a delivery count of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.shares.state.batches import StateBatch

# Kafka's constant. With a delivery limit of at most this, deliveries are never split into portions.
DELIVERED_OFTEN_MIN = 2


class RecordState(IntEnum):
    """Kafka's numbers, which are also those of the stored state; ACQUIRED is never stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AckType(IntEnum):
    """What a consumer says about a record. GAP: there is no record at this offset. RENEW (KIP-1222): extend the
    acquisition lock.
    """

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class GiveUpReason(IntEnum):
    """Why a record is archived without being acknowledged."""

    REJECTED = 0
    DELIVERY_LIMIT = 1


class Ack(NamedTuple):
    """One acknowledgement batch: a single type for all its offsets, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class AcquiredRange(NamedTuple):
    """Offsets that were acquired together, and their delivery count."""

    first: int
    last: int
    count: int  # type: ignore[assignment]  # Kafka's word for it; nobody counts a range's fields


class Ready(NamedTuple):
    """Offsets that may be acquired; `enough`: a fetch can get no more, even if more are available."""

    runs: list[tuple[int, int]]
    enough: bool


class Dead(NamedTuple):
    """Records that are about to be archived, as a dead-letter topic needs them."""

    first: int
    last: int
    count: int  # type: ignore[assignment]
    reason: GiveUpReason


class Transition(NamedTuple):
    """Changes that take effect once they are stored: then call `settle`, or `restore` if storing failed."""

    token: int
    batches: tuple[StateBatch, ...]
    dead: tuple[Dead, ...] = ()


class FetchedBatch(NamedTuple):
    """One batch of the log; a batch without data (a marker, or of an aborted transaction) is never delivered."""

    first: int
    last: int
    data: bool


class Want(NamedTuple):
    """What a fetch may acquire. Without `strict` a batch is acquired whole, even if it exceeds `max_records`."""

    member: str
    max_records: int
    batch_size: int
    strict: bool


class Rules(NamedTuple):
    """The settings of a share group that affect the delivery of records."""

    lock_ms: int = 30_000
    delivery_limit: int = 5
    locks_max: int = 2_000
    backoff_ms: int = 0
    backoff_max_ms: int = 0
    key_ordered: bool = False
    delayed: bool = False

    @property
    def often(self) -> int:
        """From this delivery count on, records are delivered in smaller portions: half of the limit, but at least
        two.
        """
        return max(DELIVERED_OFTEN_MIN, (self.delivery_limit + 1) // 2)

    @property
    def inspects(self) -> bool:
        """Whether records must be inspected before they are delivered."""
        return self.key_ordered or self.delayed

    def backoff(self, count: int) -> int:
        """Return the pause before a released record may be acquired again: doubled with each delivery, up to a
        maximum.
        """
        if self.backoff_ms <= 0:
            return 0
        return min(self.backoff_ms << min(max(count, 1) - 1, 32), max(self.backoff_max_ms, self.backoff_ms))
