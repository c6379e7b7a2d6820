"""Crowd: how many producers a partition remembers, and whom it forgets when they become too many.

Kafka forgets by time only. Here there is a bound as well, and a flood of new producer ids must not push out those that
may still send a batch again, which would then be appended twice.

Rules:
- The order is that of the log. Timestamps do not count: they are the producers' own.
- Whoever wrote within the last minutes (`limits.REMEMBERED_MINUTES`, longer than a producer tries) is never forgotten
  in favour of a producer that nobody knows. Where all are such, the new one is refused, and tries again.
- What is in the log is believed (replication, recovery, coordinators): nobody is refused. Those who wrote last stay, as
  many of them as the leader has at most. So nobody is forgotten there whom the leader had to keep.
- A producer with an open transaction is never forgotten.
- A log that was just opened does not know when its producers wrote: all of them have, lately.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from ottla.model import limits
from ottla.model.ids import ProducerId


class Remembered(Protocol):
    """A producer, as seen from here."""

    producer_id: ProducerId
    txn_first_offset: int
    written_at: int


class Crowd:
    __slots__ = ("_ends", "_full")

    def __init__(self) -> None:
        self._ends: deque[int] = deque(maxlen=limits.REMEMBERED_MINUTES)  # of the log, the oldest first
        self._full = False  # nobody could be forgotten, and no minute has passed since

    def minute(self, next_offset: int) -> None:
        """A minute has passed; the log ends here now."""
        self._ends.append(next_offset)
        self._full = False

    def begin_anew(self) -> None:
        """The producers, or the end of the log, are others."""
        self._ends.clear()
        self._full = False

    def silent(self, producers: Iterable[Remembered]) -> list[ProducerId]:
        """Ids of some that wrote long ago, the most silent ones; none if there are none."""
        if self._full or len(self._ends) < limits.REMEMBERED_MINUTES:
            return []
        found = _oldest(producers, limits.PRODUCERS_FORGOTTEN_AT_ONCE, self._ends[0])
        self._full = not found
        return found

    def beyond(self, producers: Iterable[Remembered]) -> list[ProducerId]:
        """Ids of those who are more than may be, the most silent ones."""
        return _oldest(producers, limits.PRODUCERS_FORGOTTEN_AT_ONCE, limits.INT64_MAX)


def _oldest(producers: Iterable[Remembered], count: int, below: int) -> list[ProducerId]:
    """Those without a transaction that wrote last below an offset. Offsets alone are sorted: it runs on the loop."""
    idle = [each for each in producers if each.txn_first_offset < 0 and each.written_at < below]
    if len(idle) > count:
        last = sorted([each.written_at for each in idle])[count - 1]
        idle = [each for each in idle if each.written_at <= last]
    return [each.producer_id for each in idle]
