"""LoopWatch: how busy the event loop is: its delay, the idle time of its thread, and its stalls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.model import limits
from ottla.observe.metrics.catalogue import loop as told
from ottla.observe.metrics.exposition import Exposition
from ottla.observe.metrics.histogram import RecentHistogram
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Steps
from ottla.server.loop.stalls import Stalls

_INTERVAL_S = limits.METRICS_DELAY_INTERVAL_MS / 1000


class LoopWatch:
    def __init__(self, runtime: Runtime, stalls: Stalls, busy_s: Callable[[], float]) -> None:
        """`busy_s` tells for how long the loop's thread has used a CPU or waited for one."""
        self._loop = runtime.loop
        self._clock_s = runtime.clock_s
        self._stalls = stalls
        self._busy_s = busy_s
        self.delays = RecentHistogram()  # in microseconds
        self._former = self._clock_s(), busy_s()
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._former = self._clock_s(), self._busy_s()
        self._ask()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ask(self) -> None:
        self._due_s = self._clock_s() + _INTERVAL_S
        self._timer = self._loop.call_later(_INTERVAL_S, self._called)

    def _called(self) -> None:
        # A timer may be a little early, because loops round to milliseconds.
        self.delays.all.add(max(0, int((self._clock_s() - self._due_s) * 1e6)))
        self._ask()

    def collect(self, exposition: Exposition) -> Steps:
        now_s, busy_s = self._clock_s(), self._busy_s()
        before_s, busy_before_s = self._former
        if now_s - before_s >= _INTERVAL_S:  # two scrapes in a row would compare next to nothing
            self._former = now_s, busy_s
        passed_s = max(now_s - before_s, 1e-6)
        idle = min(1.0, max(0.0, 1 - (busy_s - busy_before_s) / passed_s))
        exposition.add(told.IDLE, idle)
        exposition.add(told.NETWORK_IDLE, idle)
        every = self.delays.all
        exposition.summarize(told.DELAY, self.delays.recent(), every.count, every.sum / 1e6, scale=1e-6)
        exposition.add(told.STALLS, self._stalls.count)
        exposition.add(told.STALLED, self._stalls.held_ms / 1000)
        yield
