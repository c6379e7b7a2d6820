"""Clocks: the time of day, which an operator may set back or forward, and a steady clock, which only moves forward.

- The time of day (`now_ms`) is for times that are stored (timestamps of records, starts of transactions, commits of
  offsets) and for comparisons with stored times: retention, the expiry of offsets and transactional ids, delayed
  delivery.
- The steady clock (`steady_ms`, the event loop's) is for durations and timeouts: sessions, rebalances, timeouts of
  transactions, locks, in-sync replicas, the quorum, fetch sessions, delays before directories are removed.

A simulation sets the time of day; a test that lets time pass (`ottla.testing`) moves both clocks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.machine.kit import Moment


class Clocks:
    def __init__(self, now_ms: Callable[[], int], loop: asyncio.AbstractEventLoop) -> None:
        self.now_ms = now_ms
        self._loop = loop
        # The steady clock starts at the time of day, so that timestamp 0 is equally long ago on both clocks.
        self._begun_ms = now_ms() - int(loop.time() * 1000)

    def steady_ms(self) -> int:
        return self._begun_ms + int(self._loop.time() * 1000)

    def moment(self) -> Moment:
        return Moment(self.now_ms(), self.steady_ms())
