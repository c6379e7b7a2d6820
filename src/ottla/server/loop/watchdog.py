"""Watchdog: a thread that detects when a callback holds up the event loop, and which one.

uvloop has no hook before and after a callback, and reading a clock around each callback would slow every request. So a
separate thread looks at the loop's thread several times a second. An idle loop is left alone. A busy loop is asked to
call back: until it does it is held up, and the stack frames of its thread show by which code. Requests pay nothing for
this; the request that is being handled is read from the frames (`net/request_in_frame.py`).

The duration is measured from the moment when the watchdog first saw the loop busy, so it is a lower bound.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias

from ottla.model import limits
from ottla.server.loop.stalls import Stall, Stalls

log = logging.getLogger(__name__)

_LOOKS_PER_LIMIT = 2
_FRAMES_MAX = 200
_OTHERS = "code that is not Ottla's"

# Return the request for which the code of a frame runs, or None if the frame does not tell.
RequestOf: TypeAlias = Callable[[FrameType], str | None]


class Sighting(NamedTuple):
    """What the loop's thread was doing when the watchdog looked: the first fields of a `Stall`."""

    name: str
    place: str
    request: str | None


def watch(loop: asyncio.AbstractEventLoop, stalls: Stalls, limit_ms: int, request_of: RequestOf) -> Callable[[], None]:
    """Report callbacks of `loop` that run longer than `limit_ms` to `stalls`; return a callable that stops this."""
    stopped = threading.Event()
    threads: list[threading.Thread] = []

    def begin() -> None:
        """Start the watchdog's thread. The caller's frame is the code that calls all callbacks of the loop."""
        if not stopped.is_set():
            watched = WatchedThread.current(loop, sys._getframe(1).f_code)
            watchdog = Watchdog(loop, watched, stopped, stalls, limit_ms, request_of)
            threads.append(threading.Thread(target=watchdog.run, name="ottla-watchdog", daemon=True))
            threads[0].start()

    def stop() -> None:
        stopped.set()
        for thread in threads:
            thread.join()

    loop.call_soon(begin)
    return stop


class WatchedThread(NamedTuple):
    """The thread of an event loop."""

    id: int
    cpu_clock: int
    caller: CodeType  # the code that calls all callbacks
    idle: frozenset[CodeType]  # the innermost code while the loop is idle

    @classmethod
    def current(cls, loop: asyncio.AbstractEventLoop, caller: CodeType) -> WatchedThread:
        # uvloop waits in the frame that calls callbacks, asyncio in its selector.
        selector = getattr(loop, "_selector", None)
        idle = {caller} if selector is None else {caller, type(selector).select.__code__}
        id = threading.get_ident()
        return cls(id, time.pthread_getcpuclockid(id), caller, frozenset(idle))


class Watchdog:
    """Looks at the thread of an event loop from a thread of its own, until `stopped` is set."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        watched: WatchedThread,
        stopped: threading.Event,
        stalls: Stalls,
        limit_ms: int,
        request_of: RequestOf,
    ) -> None:
        self._loop = loop
        self._watched = watched
        self._stopped = stopped
        self._stalls = stalls
        self._limit_s = limit_ms / 1000
        self._request_of = request_of

    def run(self) -> None:
        with suppress(RuntimeError):  # the loop was closed
            while not self._stopped.wait(self._limit_s / _LOOKS_PER_LIMIT):
                if self._is_busy():
                    self._wait_for_the_loop()

    def _is_busy(self) -> bool:
        frame = sys._current_frames().get(self._watched.id)
        return frame is not None and frame.f_code not in self._watched.idle

    def _wait_for_the_loop(self) -> None:
        """Watch a loop that was found busy until it calls back; report a stall if that took longer than the limit."""
        asked_s, cpu_s = time.monotonic(), self._cpu_s()
        answer: list[tuple[float, float]] = []
        self._loop.call_soon_threadsafe(lambda: answer.append((time.monotonic(), self._cpu_s())))
        seen: Sighting | None = None
        is_logged = False
        while not self._stopped.wait(self._limit_s / _LOOKS_PER_LIMIT):
            if answer:
                answered_s, answered_cpu_s = answer[0]
                if answered_s - asked_s >= self._limit_s and seen is not None:
                    stall = Stall(*seen, (answered_s - asked_s) * 1000, (answered_cpu_s - cpu_s) * 1000)
                    self._stalls.add(stall, answered_s)
                return
            seen = self._sighting() or seen
            held_ms = (time.monotonic() - asked_s) * 1000
            if not is_logged and seen is not None and held_ms > limits.STALL_LOGGED_EARLY_MS:
                is_logged = True  # reported now, because the stall may never end
                log.error("the event loop does not go on: %s", Stall(*seen, held_ms, (self._cpu_s() - cpu_s) * 1000))

    def _cpu_s(self) -> float:
        """Return the CPU time that the loop's thread has used so far."""
        return time.clock_gettime(self._watched.cpu_clock)

    def _sighting(self) -> Sighting | None:
        """Return what runs in the loop. References to frames are dropped at once because frames keep their variables
        alive.
        """
        frame = sys._current_frames().get(self._watched.id)
        if frame is None or frame.f_code in self._watched.idle:
            return None
        callback, place, request = frame, "", None
        for _ in range(_FRAMES_MAX):
            if frame is None or frame.f_code is self._watched.caller:
                break
            place = place or _place(frame)
            request = request or self._request_of(frame)
            callback, frame = frame, frame.f_back
        return Sighting(callback.f_code.co_qualname, place or _OTHERS, request)


def _place(frame: FrameType) -> str:
    """Return module, function and line of the frame if it is Ottla's code, else an empty string."""
    module = frame.f_globals.get("__name__", "")
    return f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}" if module.startswith("ottla.") else ""
