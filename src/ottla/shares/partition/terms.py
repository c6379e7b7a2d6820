"""The words of a share-partition: states of a record, acknowledgement types, rules, and what operations answer.

    AVAILABLE ──acquire──▶ ACQUIRED ──accept──▶ ACKNOWLEDGED
        ▲                     │ ├──reject, gap──▶ ARCHIVED
        └──release, lock over─┘ └──release, lock over, at the delivery limit──▶ ARCHIVED

A record that was never handed out has no state at all; it is as good as AVAILABLE with a delivery count of zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.shares.state.batches import StateBatch

# Kafka's number. A limit that is not above it leaves no deliveries to be careful with.
DELIVERED_OFTEN_MIN = 2


class RecordState(IntEnum):
    """Kafka's numbers, which are also those of the stored state; ACQUIRED is never stored."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AckType(IntEnum):
    """What a consumer says about a record. GAP: there is none at this offset. RENEW (KIP-1222): more time, please."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class GiveUpReason(IntEnum):
    """Why a record is given up."""

    REJECTED = 0
    DELIVERY_LIMIT = 1


class Ack(NamedTuple):
    """One acknowledgement batch: a single type for all its offsets, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class AcquiredRange(NamedTuple):
    """Offsets handed out together, and for the how manieth time."""

    first: int
    last: int
    count: int  # type: ignore[assignment]  # Kafka's word for it; nobody counts a range's fields


class Ready(NamedTuple):
    """Offsets that may be handed out, and whether they are all that a fetch can get, whatever else there is."""

    runs: list[tuple[int, int]]
    enough: bool


class Dead(NamedTuple):
    """Records that are about to be given up: what a dead-letter topic wants to know."""

    first: int
    last: int
    count: int  # type: ignore[assignment]
    reason: GiveUpReason


class Transition(NamedTuple):
    """Changes that count once they are stored: `settle` them then, `restore` what was if that fails."""

    token: int
    batches: tuple[StateBatch, ...]
    dead: tuple[Dead, ...] = ()


class FetchedBatch(NamedTuple):
    """One batch of the log; one without data (a marker, an aborted transaction's) is never handed out."""

    first: int
    last: int
    data: bool


class Want(NamedTuple):
    """What a fetch may get. Without `strict` a batch is handed out whole although that makes it more records."""

    member: str
    max_records: int
    batch_size: int
    strict: bool


class Rules(NamedTuple):
    """A share group's settings, as far as they say what happens to records."""

    lock_ms: int = 30_000
    delivery_limit: int = 5
    locks_max: int = 2_000
    backoff_ms: int = 0
    backoff_max_ms: int = 0
    key_ordered: bool = False
    delayed: bool = False

    @property
    def often(self) -> int:
        """From so many deliveries on records come in smaller portions: half of the limit, but two at least."""
        return max(DELIVERED_OFTEN_MIN, (self.delivery_limit + 1) // 2)

    @property
    def inspects(self) -> bool:
        """Whether records must be looked at before they are handed out."""
        return self.key_ordered or self.delayed

    def backoff(self, count: int) -> int:
        """The pause before a released record is handed out again: doubled with each delivery, up to a maximum."""
        if self.backoff_ms <= 0:
            return 0
        return min(self.backoff_ms << min(max(count, 1) - 1, 32), max(self.backoff_max_ms, self.backoff_ms))
