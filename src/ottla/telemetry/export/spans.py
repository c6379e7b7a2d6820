"""Spans as OTLP's TracesData, and the context of a trace as it travels between nodes."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.model import limits
from ottla.telemetry.export import encoding
from ottla.telemetry.export.encoding import Attribute

# The ids of the fields, by message, as in opentelemetry.proto.trace.v1.
_RESOURCE_SPANS = 1  # TracesData
_RESOURCE, _SCOPE_SPANS = 1, 2  # ResourceSpans
_SCOPE, _SPANS = 1, 2  # ScopeSpans
_TRACE_ID, _SPAN_ID, _PARENT_ID, _NAME, _KIND, _START, _END, _ATTRIBUTES, _STATUS = 1, 2, 4, 5, 6, 7, 8, 9, 15  # Span
_STATUS_MESSAGE, _STATUS_CODE = 2, 3  # Status
_ERROR = 2
TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8


class SpanKind(IntEnum):
    INTERNAL = 1
    SERVER = 2  # a request that this node handles
    CLIENT = 3  # a request of this node to another one


class TraceParent(NamedTuple):
    """The trace that a span belongs to, and its parent; without a parent it is the first one of its trace."""

    trace_id: bytes
    span_id: bytes = b""

    def encoded(self) -> bytes:
        return self.trace_id + self.span_id


def trace_parent_of(data: bytes) -> TraceParent | None:
    """Decode what another node sent; None if it is none."""
    if len(data) != TRACE_ID_BYTES + SPAN_ID_BYTES:
        return None
    parent = TraceParent(data[:TRACE_ID_BYTES], data[TRACE_ID_BYTES:])
    return parent if any(parent.trace_id) and any(parent.span_id) else None


class EndedSpan(NamedTuple):
    """`error` is the name of what went wrong, or empty. Times are of the day, in nanoseconds."""

    parent: TraceParent
    span_id: bytes
    name: str
    kind: SpanKind
    begun_ns: int
    ended_ns: int
    attributes: tuple[tuple[str, Attribute], ...]
    error: str


def traces_of(spans: Sequence[EndedSpan], resource: bytes) -> Generator[None, None, bytes]:
    """Return TracesData; yield where a slice ends."""
    told = [encoding.sized(_SCOPE, encoding.scope())]
    for number, span in enumerate(spans, 1):
        told.append(encoding.sized(_SPANS, _span(span)))
        if not number % limits.OTEL_SPANS_PER_SLICE:
            yield
    scopes = encoding.sized(_SCOPE_SPANS, b"".join(told))
    return encoding.sized(_RESOURCE_SPANS, encoding.sized(_RESOURCE, resource) + scopes)


def _span(span: EndedSpan) -> bytes:
    told = encoding.sized(_TRACE_ID, span.parent.trace_id) + encoding.sized(_SPAN_ID, span.span_id)
    if span.parent.span_id:
        told += encoding.sized(_PARENT_ID, span.parent.span_id)
    told += encoding.text(_NAME, span.name) + encoding.number(_KIND, span.kind)
    told += encoding.fixed(_START, span.begun_ns) + encoding.fixed(_END, span.ended_ns)
    told += encoding.attributes(_ATTRIBUTES, span.attributes)
    if span.error:
        status = encoding.text(_STATUS_MESSAGE, span.error) + encoding.number(_STATUS_CODE, _ERROR)
        told += encoding.sized(_STATUS, status)
    return told
