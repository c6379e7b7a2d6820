"""Watchdog: a thread that sees when one callback holds up the event loop, and which one.

uvloop has no hook before and after a callback, and a look at the clock around each would cost every request. So a
thread of its own looks at the loop's thread some times a second. An idle loop is left alone. A busy one is asked to
call back: until it does it is held up, and the frames of its thread say by what. Requests pay nothing for this; what is
being handled is read from the frames (`net/request_in_frame.py`).

It measures from when it first saw the loop busy, so what it tells is a lower bound.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NamedTuple, TypeAlias

from ottla.model import limits
from ottla.server.loop.stalls import Stall, Stalls

log = logging.getLogger(__name__)

_LOOKS_PER_LIMIT = 2
_FRAMES_MAX = 200
_OTHERS = "code that is not Ottla's"

# What request the code of a frame works for; None: the frame does not say.
RequestOf: TypeAlias = Callable[[FrameType], str | None]


class Sighting(NamedTuple):
    """What the loop's thread was seen to do: the first fields of a `Stall`."""

    name: str
    place: str
    request: str | None


def watch(loop: asyncio.AbstractEventLoop, stalls: Stalls, limit_ms: int, request_of: RequestOf) -> Callable[[], None]:
    """Tells `stalls` of callbacks of `loop` that run longer than `limit_ms`; gives what ends it."""
    return Watchdog(loop, stalls, limit_ms, request_of).stop


class Watchdog:
    def __init__(self, loop: asyncio.AbstractEventLoop, stalls: Stalls, limit_ms: int, request_of: RequestOf) -> None:
        self._loop = loop
        self._stalls = stalls
        self._limit_s = limit_ms / 1000
        self._request_of = request_of
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ottla-watchdog", daemon=True)
        loop.call_soon(self._begin)

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _begin(self) -> None:
        """In the loop, called by whatever calls all of its callbacks."""
        if self._stopped.is_set():
            return
        self._watched = threading.get_ident()
        self._cpu_clock = time.pthread_getcpuclockid(self._watched)
        self._caller = sys._getframe(1).f_code
        # The innermost code of a loop that waits: uvloop waits in its caller's frame, asyncio in its selector's.
        selector = getattr(self._loop, "_selector", None)
        self._idle = {self._caller} if selector is None else {self._caller, type(selector).select.__code__}
        self._thread.start()

    # --- in the thread of its own

    def _watch(self) -> None:
        with suppress(RuntimeError):  # the loop was closed
            while not self._stopped.wait(self._limit_s / _LOOKS_PER_LIMIT):
                if self._is_busy():
                    self._wait_for_the_loop()

    def _is_busy(self) -> bool:
        frame = sys._current_frames().get(self._watched)
        return frame is not None and frame.f_code not in self._idle

    def _wait_for_the_loop(self) -> None:
        """From a look that found it busy until it calls back."""
        asked_s, cpu_s = time.monotonic(), self._cpu_s()
        answer: list[tuple[float, float]] = []
        self._loop.call_soon_threadsafe(lambda: answer.append((time.monotonic(), self._cpu_s())))
        seen: Sighting | None = None
        cried = False
        while not self._stopped.wait(self._limit_s / _LOOKS_PER_LIMIT):
            if answer:
                answered_s, answered_cpu_s = answer[0]
                if answered_s - asked_s >= self._limit_s and seen is not None:
                    stall = Stall(*seen, (answered_s - asked_s) * 1000, (answered_cpu_s - cpu_s) * 1000)
                    self._stalls.add(stall, answered_s)
                return
            seen = self._sighting() or seen
            held_ms = (time.monotonic() - asked_s) * 1000
            if not cried and seen is not None and held_ms > limits.STALL_CRY_MS:
                cried = True  # it may never end
                log.error("the event loop does not go on: %s", Stall(*seen, held_ms, (self._cpu_s() - cpu_s) * 1000))

    def _cpu_s(self) -> float:
        """What the loop's thread has computed so far."""
        return time.clock_gettime(self._cpu_clock)

    def _sighting(self) -> Sighting | None:
        """What runs in the loop. Frames are let go of at once: they keep alive what is in them."""
        frame = sys._current_frames().get(self._watched)
        if frame is None or frame.f_code in self._idle:
            return None
        callback, place, request = frame, "", None
        for _ in range(_FRAMES_MAX):
            if frame is None or frame.f_code is self._caller:
                break
            place = place or _place(frame)
            request = request or self._request_of(frame)
            callback, frame = frame, frame.f_back
        return Sighting(callback.f_code.co_qualname, place or _OTHERS, request)


def _place(frame: FrameType) -> str:
    """Where it is, if that is code of ours."""
    module = frame.f_globals.get("__name__", "")
    return f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}" if module.startswith("ottla.") else ""
