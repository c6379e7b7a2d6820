"""Spans, as OpenTelemetry's own messages read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from ottla.telemetry.export import encoding
from ottla.telemetry.export.spans import EndedSpan, SpanKind, TraceParent, trace_parent_of, traces_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
TIMES = st.integers(0, 2**64 - 1)
SPANS = st.builds(
    EndedSpan,
    st.builds(TraceParent, st.binary(min_size=16, max_size=16), st.sampled_from([b"", b"12345678"])),
    st.binary(min_size=8, max_size=8),
    TEXTS,
    st.sampled_from(SpanKind),
    TIMES,
    TIMES,
    st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    TEXTS,
)


def encoded(spans: list[EndedSpan]) -> tuple[bytes, int]:
    """The message, and the number of slices that it took."""
    steps = traces_of(spans, encoding.resource({"service.name": "ottla"}))
    slices = 1
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, slices
        slices += 1


def read(body: bytes) -> list[Span]:
    (resource,) = TracesData.FromString(body).resource_spans
    assert [each.value.string_value for each in resource.resource.attributes] == ["ottla"]
    (scope,) = resource.scope_spans
    assert scope.scope.name == "ottla"
    return list(scope.spans)


@given(st.lists(SPANS, max_size=4))
def test_spans_come_back(spans: list[EndedSpan]) -> None:
    for found, span in zip(read(encoded(spans)[0]), spans, strict=True):
        assert (found.trace_id, found.parent_span_id, found.span_id) == (*span.parent, span.span_id)
        assert (found.name, found.kind) == (span.name, span.kind)
        assert (found.start_time_unix_nano, found.end_time_unix_nano) == (span.begun_ns, span.ended_ns)
        assert tuple((each.key, each.value.string_value) for each in found.attributes) == span.attributes
        is_error = found.status.code == Status.StatusCode.STATUS_CODE_ERROR
        assert (is_error, found.status.message) == (bool(span.error), span.error)


def test_many_are_encoded_in_slices() -> None:
    span = EndedSpan(TraceParent(b"t" * 16), b"s" * 8, "Fetch", SpanKind.SERVER, 1, 2, (), "")
    body, slices = encoded([span] * 512)
    assert (len(read(body)), slices) == (512, 6)


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8))
def test_a_parent_comes_back(trace_id: bytes, span_id: bytes) -> None:
    parent = TraceParent(trace_id, span_id)
    is_valid = any(trace_id) and any(span_id)
    assert trace_parent_of(parent.encoded()) == (parent if is_valid else None)


@pytest.mark.parametrize("data", [b"", b"x" * 16, b"x" * 23, b"x" * 25, bytes(24)])
def test_what_is_no_parent(data: bytes) -> None:
    assert trace_parent_of(data) is None
