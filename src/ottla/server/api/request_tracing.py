"""RequestTracing: the spans of requests, on a node that traces: one per request that is sampled, or that another node
sent for one.

It stands around the handling of every request (`Around`), so that connections of other nodes do nothing for it. A
span begins when the request had arrived, and ends when its answer is ready. Its times are told in Kafka's words: queue
is until the handler was called, local until that returned, remote the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.server.api.dispatch import Route
from ottla.server.api.dispatcher import Around, RequestInTurn
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.api.forwarding.forwarding import Forwarding
from ottla.server.api.request_counts import NOTICED_S, finders_of_errors
from ottla.server.api.watching.seen_answer import SeenAnswer
from ottla.server.loop.current_span import work_for
from ottla.server.loop.later import Answer, Large
from ottla.server.otel.tracer import RecordedSpan, Tracer
from ottla.telemetry.export.spans import TraceParent, trace_parent_of
from ottla.wire.compile import WireError, decoder
from ottla.wire.header import CLIENT_ID_AT, RequestHeader
from ottla.wire.message import Request, Response

_FLEXIBLE_HEADER = RequestHeader.since("trace_parent")
_NULL = 0x8000  # the size of a client id from which on there is none
_MS_PER_S = 1000


class RequestTracing:
    def __init__(self, tracer: Tracer, inner: Around) -> None:
        self._tracer = tracer
        self._chance, self._ratio = tracer.chance, tracer.ratio
        self._inner = inner

    def __call__(
        self,
        route: Route,
        forwarding: Forwarding | None,
        request: Request[Response],
        frame: memoryview,
        turn: RequestInTurn,
    ) -> Answer[Any]:
        parent = _trace_parent_in(frame) if route.is_flexible and _has_tags(frame) else None
        if parent is None and self._chance() >= self._ratio:
            turn.context.span = None
            work_for(None)  # a request before may have begun what led to this one
            return self._inner(route, forwarding, request, frame, turn)
        span = self._tracer.begin(route.endpoint.name, parent, min(turn.begun_s, turn.late_s - NOTICED_S))
        tell = _RequestSpan(span, self._tracer, turn.begun_s)
        tell.describe(route, len(frame), turn)
        turn.context.span = span
        work_for(span)
        try:
            answer = self._inner(route, forwarding, request, frame, turn)
        except BaseException as error:
            span.end(type(error).__name__)
            raise
        finally:
            work_for(None)
        return tell.watched(answer)


class _RequestSpan(SeenAnswer):
    """The span of one request, until its answer is ready."""

    def __init__(self, span: RecordedSpan, tracer: Tracer, begun_s: float) -> None:
        self._span = span
        self._clock_s = tracer.clock_s
        self._begun_s = self._returned_s = begun_s

    def describe(self, route: Route, size_bytes: int, turn: RequestInTurn) -> None:
        span, peer = self._span, turn.context.connection
        span.note("messaging.system", "kafka")
        span.note("messaging.client.id", turn.context.client_id)
        span.note("client.address", peer.remote_address[0])
        span.note("ottla.listener", peer.listener)
        span.note("ottla.api.version", route.version)
        span.note("ottla.request.bytes", size_bytes)
        span.note("ottla.queue.ms", (self._begun_s - span.begun_s) * _MS_PER_S)

    def watched(self, answer: Answer[Any]) -> Answer[Any]:
        """Return the handler's answer; the span ends when it is ready."""
        self._returned_s = self._clock_s()
        return self.seen(answer)

    async def making(self, answer: Awaitable[object]) -> object:
        work_for(self._span)
        return await answer

    def ended(self, reason: str) -> None:
        self._span.end(reason)

    def answered(self, value: object) -> None:
        span = self._span
        span.note("ottla.local.ms", (self._returned_s - self._begun_s) * _MS_PER_S)
        span.note("ottla.remote.ms", (self._clock_s() - self._returned_s) * _MS_PER_S)
        span.note("ottla.forwarded", isinstance(value, Forwarded))
        span.end(_error_in(value.response if isinstance(value, Large) else value))


def _has_tags(frame: memoryview) -> bool:
    """Return whether a flexible header has tagged fields, which hardly any has; its client id was decoded already."""
    size = frame[CLIENT_ID_AT - 2] << 8 | frame[CLIENT_ID_AT - 1]
    return frame[CLIENT_ID_AT + (size if size < _NULL else 0)] != 0


def _trace_parent_in(frame: memoryview) -> TraceParent | None:
    """Return the trace that another node sent along in a flexible header, as a tagged field."""
    try:
        header, _ = decoder(RequestHeader, _FLEXIBLE_HEADER)(frame, 0)
    except (WireError, IndexError, UnicodeDecodeError):
        return None
    parent = header.trace_parent
    return None if parent is None or len(parent) > limits.TRACE_PARENT_BYTES_MAX else trace_parent_of(bytes(parent))


def _error_in(answer: object) -> str:
    """Return the name of the first error code in a response; of one that another node made, it tells itself."""
    if not isinstance(answer, Response):
        return ""
    found: list[int] = []
    finders_of_errors(type(answer)).codes(answer, found.append)
    return _name_of(found[0]) if found else ""


def _name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # of a newer release, in an answer that was passed on
        return str(code)
