"""How many producers a partition remembers, and which it forgets when there are too many.

Kafka forgets by time only. Here there is a bound as well, and a flood of new producer ids must not evict producers that
may still retry a batch, which would then be appended twice.

Rules:
- Producers are ordered by the offsets of their last batches. Timestamps do not count: they are the producers' own.
- A producer that wrote within the last minutes (`limits.REMEMBERED_MINUTES`, longer than a producer retries) is never
  forgotten in favour of an unknown producer. If all are such, the new producer is refused with a retriable error.
- Batches that are in the log already (replication, recovery) or come from coordinators are never refused. The producers
  that wrote last stay, as many of them as the leader has at most. So a follower keeps all producers that the leader has
  to keep.
- A producer with an open transaction is never forgotten.
- A log that was just opened does not know when its producers wrote: all count as recent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from ottla.model import limits
from ottla.model.ids import ProducerId


class Remembered(Protocol):
    """The part of a producer's state that is needed here."""

    producer_id: ProducerId
    txn_first_offset: int
    written_at: int


class ProducerLimit:
    __slots__ = ("_ends", "_full")

    def __init__(self) -> None:
        # end offsets of the log, one per minute, the oldest first
        self._ends: deque[int] = deque(maxlen=limits.REMEMBERED_MINUTES)
        self._full = False  # no producer could be forgotten, and no minute has passed since

    def minute(self, next_offset: int) -> None:
        """Note that a minute has passed and the log now ends at `next_offset`."""
        self._ends.append(next_offset)
        self._full = False

    def begin_anew(self) -> None:
        """Begin anew, because the producers, or the end of the log, have changed."""
        self._ends.clear()
        self._full = False

    def silent(self, producers: Iterable[Remembered]) -> list[ProducerId]:
        """Return ids of producers that wrote longest ago, but not within the last minutes; maybe none."""
        if self._full or len(self._ends) < limits.REMEMBERED_MINUTES:
            return []
        found = _oldest(producers, limits.PRODUCERS_FORGOTTEN_AT_ONCE, self._ends[0])
        self._full = not found
        return found

    def beyond(self, producers: Iterable[Remembered]) -> list[ProducerId]:
        """Return ids of the producers that wrote longest ago, to get below the bound."""
        return _oldest(producers, limits.PRODUCERS_FORGOTTEN_AT_ONCE, limits.INT64_MAX)


def _oldest(producers: Iterable[Remembered], count: int, below: int) -> list[ProducerId]:
    """Return the `count` oldest producers without a transaction whose last batch lies below an offset.

    Only offsets are sorted, because this runs on the loop.
    """
    idle = [each for each in producers if each.txn_first_offset < 0 and each.written_at < below]
    if len(idle) > count:
        last = sorted([each.written_at for each in idle])[count - 1]
        idle = [each for each in idle if each.written_at <= last]
    return [each.producer_id for each in idle]
