"""Pushes: sends what a node tells of one signal (metrics, traces) to the collector, one push at a time.

Rules: nobody waits for a collector but the push itself, in a thread of its own, which ends with the process. After a
failure nothing is pushed for a while, which gets longer. The log says once that pushing fails, and once that it works.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import NamedTuple, TypeVar

from ottla.model import limits
from ottla.server.loop.runtime import Runtime
from ottla.server.otel.posting import PushFailed, post
from ottla.server.settings.otel_place import OtelPlace

log = logging.getLogger(__name__)

T = TypeVar("T")
_DOUBLINGS_MAX = 16
ACCEPTED, IN_PART, FAILED = "accepted", "rejected_in_part", "failed"


class PushFate(Enum):
    """What became of a push. GIVE_UP: the collector never accepts this message. LATER: it may accept the same later."""

    ACCEPTED = "accepted"
    GIVE_UP = "give up"
    LATER = "later"


class EndedPush(NamedTuple):
    """The fate of a push, and how many of its points or spans an accepted one left rejected."""

    fate: PushFate
    rejected: int = 0

    @property
    def is_for_later(self) -> bool:
        return self.fate is PushFate.LATER


class Pushes:
    def __init__(self, runtime: Runtime, place: OtelPlace, signal: str) -> None:
        self.signal = signal
        self.outcomes: Counter[str] = Counter()
        self.sent_bytes = 0
        self._runtime = runtime
        self._place = place
        self._failures = 0  # in a row
        self._not_before_ms = 0

    @property
    def may_push(self) -> bool:
        """Whether the pause after a failure is over."""
        return self._runtime.steady_ms() >= self._not_before_ms

    async def push(self, body: bytes) -> EndedPush:
        """Push an encoded message."""
        try:
            accepted = await in_thread(self._runtime.loop, partial(post, self._place, self.signal, body))
        except PushFailed as failure:
            self._failed(failure)
            return EndedPush(PushFate.LATER if failure.passes else PushFate.GIVE_UP)
        self.sent_bytes += accepted.sent_bytes
        if accepted.rejected.number:
            self.outcomes[IN_PART] += 1
            reason = accepted.rejected.reason[: limits.OTEL_REASON_CHARS_MAX]
            if self.outcomes[IN_PART] == 1:
                log.warning("%s of this node are not accepted in part: %r", self.signal, reason)
        else:
            self.outcomes[ACCEPTED] += 1
        if self._failures:
            log.info("%s are pushed to %s again", self.signal, self._place.shown)
        self._failures = 0
        return EndedPush(PushFate.ACCEPTED, accepted.rejected.number)

    def _failed(self, failure: PushFailed) -> None:
        self.outcomes[FAILED] += 1
        pause_ms = max(limits.OTEL_RETRY_MS << min(self._failures, _DOUBLINGS_MAX), failure.retry_ms)
        self._not_before_ms = self._runtime.steady_ms() + min(pause_ms, limits.OTEL_RETRY_MS_MAX)
        if not self._failures:
            log.warning("%s cannot be pushed to %s: %s", self.signal, self._place.shown, failure)
        self._failures += 1


def in_thread(loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> asyncio.Future[T]:
    """Run `work` in a thread of its own: the process, and whoever cancels the future, does not wait for it."""
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():  # cancelled
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # what `work` returned

    def run() -> None:
        result: T | None = None
        failure: Exception | None = None
        try:
            result = work()
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="otel", daemon=True).start()
    return future
