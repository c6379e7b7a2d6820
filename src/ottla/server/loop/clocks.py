"""Clocks: the time of day, which somebody may set, and a clock that only goes on.

- The time of day (`now_ms`) is for what is written down (timestamps of records, starts of transactions, commits of
  offsets) and for what compares with that: retention, the expiry of offsets and transactional ids, delayed delivery.
- The steady one (`steady_ms`, the event loop's) is for what is measured or waited for: sessions, rebalances, timeouts
  of transactions, locks, in-sync replicas, the quorum, fetch sessions, delays before directories are removed.

A simulation sets the first; a test that lets time pass (`ottla.testing`) moves both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.machine.kit import Moment


class Clocks:
    def __init__(self, now_ms: Callable[[], int], loop: asyncio.AbstractEventLoop) -> None:
        self.now_ms = now_ms
        self._loop = loop
        # It begins with the time of day, so that 0 is as long ago for the one as for the other.
        self._begun_ms = now_ms() - int(loop.time() * 1000)

    def steady_ms(self) -> int:
        return self._begun_ms + int(self._loop.time() * 1000)

    def moment(self) -> Moment:
        return Moment(self.now_ms(), self.steady_ms())
