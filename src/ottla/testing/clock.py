"""A clock that a test can advance, so that sessions expire, transactions time out and segments age within milliseconds.

The broker's event loop reads its time from this clock, so everything in it that waits (sessions, rebalances, locks,
retention) follows. Time goes on as usual; `advance` adds to it. The added time passes in steps from one timer that is
due to the next, but in a thousand steps at most, so that advancing by a week is fast.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
import time
from collections.abc import Callable
from contextvars import Context
from datetime import timedelta
from typing import Any

from ottla.model.durations import parse_duration_ms

STEPS_MAX = 1_000


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is ahead of the machine's by `ahead_s`."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self._deadlines: list[float] = []
        super().__init__()

    def time(self) -> float:
        return super().time() + self.ahead_s

    def call_at(  # type: ignore[override]  # the arguments may have any types
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        heapq.heappush(self._deadlines, when)
        return super().call_at(when, callback, *args, context=context)

    async def pass_time(self, duration_s: float) -> None:
        """Advance the time from one timer to the next, until `duration_s` have passed."""
        until_s = self.time() + duration_s
        step_s = duration_s / STEPS_MAX
        while (left_s := until_s - self.time()) > 0:
            now_s = self.time()
            while self._deadlines and self._deadlines[0] <= now_s:
                heapq.heappop(self._deadlines)
            due_s = self._deadlines[0] - now_s if self._deadlines else left_s
            self.ahead_s += min(left_s, max(due_s, step_s))
            await _a_turn()
        await _a_turn()


async def _a_turn() -> None:
    """Let due callbacks run, and those that they schedule without a delay."""
    for _ in range(3):
        await asyncio.sleep(0)


class Clock:
    """The clock of a broker: `broker.clock.advance("45s")`."""

    def __init__(self) -> None:
        self._loop: VirtualLoop | None = None
        self._before_s = 0.0  # `ahead_s` of the broker's earlier loop: a restart does not turn the clock back

    def now_ms(self) -> int:
        """The broker's time, in milliseconds since 1970."""
        return time.time_ns() // 1_000_000 + int(self._ahead_s * 1000)

    def advance(self, duration: str | float | timedelta) -> None:
        """Advance the clock by `"45s"`, `"2h30m"`, `"500ms"`, a timedelta, or seconds. Returns when due timers have
        run.
        """
        assert self._loop is not None, "the broker is not running"
        duration_s = _seconds(duration)
        if not 0 <= duration_s < math.inf:
            raise ValueError(f"time passes forwards, and not for ever: {duration!r}")
        asyncio.run_coroutine_threadsafe(self._loop.pass_time(duration_s), self._loop).result()

    @property
    def _ahead_s(self) -> float:
        return self._loop.ahead_s if self._loop is not None else self._before_s

    def new_loop(self) -> VirtualLoop:
        """The event loop for a start of the broker."""
        self._before_s = self._ahead_s
        loop = VirtualLoop()
        loop.ahead_s = self._before_s
        self._loop = loop
        return loop


class Pause:
    """Stops the whole broker at any point, as SIGSTOP would."""

    def __init__(self) -> None:
        self._go_on: threading.Event | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._go_on is None:
            reached, go_on = threading.Event(), threading.Event()
            self._go_on = go_on

            def stand_still() -> None:
                reached.set()
                go_on.wait()

            loop.call_soon_threadsafe(stand_still)
            reached.wait()

    def end(self) -> None:
        if self._go_on is not None:
            self._go_on.set()
            self._go_on = None


def _seconds(duration: str | float | timedelta) -> float:
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, str):
        return parse_duration_ms(duration) / 1000
    return float(duration)
