"""Tracer: the spans of this node: which requests begin a trace, and how its ended spans come to the collector.

Rules: spans that wait to be pushed are bounded; what is too much is dropped and counted. What the collector refuses is
counted, and not pushed again. A span that never ends (its work was given up) is never pushed. Times are measured by the
clock that never goes back, and told by the time of day.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from random import Random

from ottla.model import limits
from ottla.server.loop.current_span import Attribute
from ottla.server.loop.runtime import Runtime
from ottla.server.otel.pushes import EndedPush, Pushes, PushFate
from ottla.telemetry.export.spans import (
    SPAN_ID_BYTES,
    TRACE_ID_BYTES,
    EndedSpan,
    SpanKind,
    TraceParent,
    traces_of,
)

_NS_PER_MS = 1_000_000
PUSHED, REFUSED, DROPPED = "pushed", "refused", "dropped"


class RecordedSpan:
    """A span under way; see `OpenSpan` for what others do with it."""

    __slots__ = ("_attributes", "_id", "_kind", "_name", "_parent", "_tracer", "begun_s", "is_open")

    def __init__(self, tracer: Tracer, name: str, kind: SpanKind, parent: TraceParent, begun_s: float) -> None:
        self.begun_s = begun_s
        self.is_open = True
        self._tracer = tracer
        self._name = name
        self._kind = kind
        self._parent = parent
        self._id = tracer.new_id(SPAN_ID_BYTES)
        self._attributes: list[tuple[str, Attribute]] = []

    @property
    def _as_parent(self) -> TraceParent:
        return TraceParent(self._parent.trace_id, self._id)

    @property
    def trace_parent(self) -> bytes:
        return self._as_parent.encoded()

    def child(self, name: str, *, asks: bool = False) -> RecordedSpan:
        kind = SpanKind.CLIENT if asks else SpanKind.INTERNAL
        return RecordedSpan(self._tracer, name, kind, self._as_parent, self._tracer.clock_s())

    def note(self, name: str, value: Attribute) -> None:
        self._attributes.append((name, value[: limits.OTEL_TEXT_CHARS_MAX] if isinstance(value, str) else value))

    def end(self, error: str = "") -> None:
        if not self.is_open:
            return
        self.is_open = False
        if error:
            self.note("error.type", error)
        tracer = self._tracer
        tracer.ended(
            EndedSpan(
                self._parent,
                self._id,
                self._name,
                self._kind,
                tracer.time_of_day_ns(self.begun_s),
                tracer.time_of_day_ns(tracer.clock_s()),
                tuple(self._attributes),
                error[: limits.OTEL_TEXT_CHARS_MAX],
            )
        )


class Tracer:
    def __init__(self, runtime: Runtime, pushes: Pushes, resource: Callable[[], bytes], ratio: float) -> None:
        self.clock_s = runtime.clock_s
        self.outcomes: Counter[str] = Counter()
        self._runtime = runtime
        self._pushes = pushes
        self._resource = resource
        self.ratio = ratio  # of the requests that begin a trace, by `chance`
        self._random = Random(runtime.rng.getrandbits(128))  # one of the system asks the kernel each time
        self.chance = self._random.random
        self._waiting: deque[EndedSpan] = deque()
        self._pushing = asyncio.Lock()
        self._ahead_ns = self._time_of_day_ahead_ns()

    def _time_of_day_ahead_ns(self) -> int:
        return self._runtime.now_ms() * _NS_PER_MS - int(self.clock_s() * 1e9)

    def _follow_clock(self) -> None:
        """Follow a time of day that was set; it is only known to the millisecond, so nothing less is followed."""
        ahead_ns = self._time_of_day_ahead_ns()
        if abs(ahead_ns - self._ahead_ns) > limits.OTEL_CLOCK_STEP_MS * _NS_PER_MS:
            self._ahead_ns = ahead_ns

    def time_of_day_ns(self, at_s: float) -> int:
        return self._ahead_ns + int(at_s * 1e9)

    def new_id(self, size_bytes: int) -> bytes:
        return self._random.getrandbits(size_bytes * 8).to_bytes(size_bytes, "big")

    def begin(self, name: str, parent: TraceParent | None, begun_s: float) -> RecordedSpan:
        """Begin the span of a request; `parent` came with it from another node."""
        trace = parent if parent is not None else TraceParent(self.new_id(TRACE_ID_BYTES))
        return RecordedSpan(self, name, SpanKind.SERVER, trace, begun_s)

    def ended(self, span: EndedSpan) -> None:
        if len(self._waiting) < limits.OTEL_SPANS_WAITING_MAX:
            self._waiting.append(span)
        else:
            self.outcomes[DROPPED] += 1

    async def push(self) -> None:
        """Push all waiting spans, if pushing did not fail too recently."""
        async with self._pushing:
            self._follow_clock()
            while self._waiting and self._pushes.may_push:
                count = min(len(self._waiting), limits.OTEL_SPANS_PER_PUSH_MAX)
                some = [self._waiting.popleft() for _ in range(count)]
                ended = EndedPush(PushFate.LATER)
                try:
                    body = await self._runtime.slices.finish(traces_of(some, self._resource()))
                    ended = await self._pushes.push(body)
                finally:  # also of a node that stops
                    self._settle(some, ended)

    def _settle(self, spans: list[EndedSpan], ended: EndedPush) -> None:
        """Count spans whose push has ended, or keep them."""
        if ended.is_for_later:
            self._keep(spans)
            return
        refused = len(spans) if ended.fate is PushFate.GIVE_UP else min(max(ended.rejected, 0), len(spans))
        for outcome, count in ((REFUSED, refused), (PUSHED, len(spans) - refused)):
            if count:
                self.outcomes[outcome] += count

    def _keep(self, spans: list[EndedSpan]) -> None:
        """Put spans back that could not be pushed, the newest first as far as there is room."""
        room = limits.OTEL_SPANS_WAITING_MAX - len(self._waiting)
        kept = spans[max(len(spans) - room, 0) :]
        self.outcomes[DROPPED] += len(spans) - len(kept)
        self._waiting.extendleft(reversed(kept))

    async def close(self) -> None:
        """Push what is left, if that is quick."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.OTEL_LAST_PUSH_S):
                await self.push()
