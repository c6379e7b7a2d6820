"""The decoder of pushes, compared with Google's library and OpenTelemetry's messages, and fed with anything."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, MetricsData, NumberDataPoint, Sum
from tests.telemetry.pushes import CUMULATIVE, DELTA, attributes, counter, gauge, payload

from ottla.model import limits
from ottla.telemetry.otlp import MetricPoint, PushedMetrics, decode_metrics
from ottla.telemetry.protobuf import PayloadError
from ottla.wire.varint import uvarint_bytes

INT64 = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def any_values() -> st.SearchStrategy[AnyValue]:
    return st.one_of(
        st.builds(AnyValue, string_value=TEXTS),
        st.builds(AnyValue, bool_value=st.booleans()),
        st.builds(AnyValue, int_value=INT64),
        st.builds(AnyValue, double_value=DOUBLES),
        st.builds(AnyValue, bytes_value=st.binary(max_size=5)),
    )


LABELS = st.lists(st.builds(KeyValue, key=TEXTS, value=any_values()), max_size=4)
TIMES = st.integers(0, 2**64 - 1)
POINTS = st.lists(
    st.one_of(
        st.builds(NumberDataPoint, as_double=DOUBLES, attributes=LABELS, time_unix_nano=TIMES),
        st.builds(NumberDataPoint, as_int=INT64, attributes=LABELS, start_time_unix_nano=TIMES, flags=st.just(1)),
    ),
    max_size=4,
)
SUMS = st.builds(
    Sum, data_points=POINTS, aggregation_temporality=st.sampled_from([0, 1, 2]), is_monotonic=st.booleans()
)
METRICS = st.one_of(
    st.builds(Metric, name=TEXTS, unit=TEXTS, gauge=st.builds(Gauge, data_points=POINTS)),
    st.builds(Metric, name=TEXTS, description=TEXTS, sum=SUMS),
)


@st.composite
def pushes(draw: st.DrawFn) -> MetricsData:
    data = MetricsData()
    for _ in range(draw(st.integers(0, 2))):
        resource = data.resource_metrics.add(schema_url=draw(TEXTS))
        resource.resource.attributes.extend(draw(LABELS))
        for _ in range(draw(st.integers(0, 2))):
            scope = resource.scope_metrics.add()
            scope.scope.name = draw(TEXTS)
            scope.metrics.extend(draw(st.lists(METRICS, max_size=3)))
    return data


def text_of(value: AnyValue) -> str:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return str(value.bool_value).lower()
    if kind == "int_value":
        return str(value.int_value)
    return repr(value.double_value) if kind == "double_value" else ""


def read_by_library(data: MetricsData) -> PushedMetrics:
    """What the decoder should find, by the library's own reading."""
    found = PushedMetrics({}, [], 0)
    left_out = 0
    for resource in data.resource_metrics:
        found.resource.update({each.key: text_of(each.value) for each in resource.resource.attributes})
        for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
            data_of = metric.sum if metric.WhichOneof("data") == "sum" else metric.gauge
            if not metric.name:
                left_out += 1
                continue
            for point in data_of.data_points:
                labels = {each.key: text_of(each.value) for each in point.attributes}
                value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
                is_delta = data_of is metric.sum and metric.sum.aggregation_temporality == DELTA
                is_counter = data_of is metric.sum and metric.sum.is_monotonic
                found.points.append(
                    MetricPoint(metric.name, tuple(sorted(labels.items())), value, is_counter, is_delta)
                )
    return found._replace(left_out=left_out)


@given(pushes())
def test_what_the_library_reads_is_what_we_read(data: MetricsData) -> None:
    assert decode_metrics(data.SerializeToString()) == read_by_library(data)


@given(pushes(), st.data())
def test_a_payload_that_is_cut_off_or_changed_is_read_or_refused(data: MetricsData, draw: st.DataObject) -> None:
    payload = bytearray(data.SerializeToString())
    for _ in range(draw.draw(st.integers(0, 3))):
        if payload:
            payload[draw.draw(st.integers(0, len(payload) - 1))] = draw.draw(st.integers(0, 255))
    cut = bytes(payload[: draw.draw(st.integers(0, len(payload)))])
    try:
        found = decode_metrics(cut)
    except PayloadError:
        return
    assert len(found.points) <= len(cut)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    try:
        decode_metrics(payload)
    except PayloadError:
        with pytest.raises(DecodeError):
            MetricsData().ParseFromString(payload)


def test_unknown_fields_are_skipped() -> None:
    group = b"\x53" + b"\x5b\x08\x01\x5c" + b"\x12\x01x" + b"\x54"  # field 10, a group with a group and a text in it
    unknown = b"\xf8\x01\x07" + b"\xf9\x01" + bytes(8) + b"\xfd\x01" + bytes(4) + b"\xfa\x01\x02ab" + group
    assert MetricsData().ParseFromString(unknown) == len(unknown)
    known = payload(gauge("a", 1.5))
    assert decode_metrics(unknown + known + unknown) == decode_metrics(known)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"\x0a", "cut off"),
        (b"\x0a\x05abc", "field 1 is cut off"),
        (b"\x0a\xff\xff\xff\xff\x0f", "field 1 is cut off"),
        (b"\x0a\xff\xff\xff\xff\xff\xff", "too many bytes"),
        (b"\xf8" + b"\xff" * 11, "too many bytes"),
        (b"\x00\x01", "no valid number"),
        (b"\x0e\x01", "no valid type"),
        (b"\x0b", "no end"),
        (b"\x0b\x14", "no valid type"),
        (b"\x0c", "no valid type"),
        (b"\x09abc", "field 1 is cut off"),
        (b"\x0b" * 101, "too deeply"),
        (payload(gauge("a", 1)).replace(b"a", b"\xff", 1), "not UTF-8"),
    ],
)
def test_what_is_no_message_is_refused(bad: bytes, why: str) -> None:
    with pytest.raises(PayloadError, match=why):
        decode_metrics(bad)


def test_too_many_fields_are_refused() -> None:
    with pytest.raises(PayloadError, match="more than 200000 fields"):
        decode_metrics(b"\x10\x01" * (limits.TELEMETRY_FIELDS_MAX + 1))


def test_too_many_values_are_left_out() -> None:
    metric = gauge("many", 0)
    for value in range(limits.TELEMETRY_POINTS_MAX + 9):
        metric.gauge.data_points.append(NumberDataPoint(as_int=value))
    found = decode_metrics(payload(metric))
    assert (len(found.points), found.left_out) == (limits.TELEMETRY_POINTS_MAX, 10)


@pytest.mark.parametrize(
    "metric",
    [
        gauge("x" * (limits.TELEMETRY_NAME_CHARS_MAX + 1), 1),
        gauge("", 1),
        gauge("a", 1, topic="x" * (limits.TELEMETRY_LABEL_CHARS_MAX + 1)),
        gauge("a", 1, **{f"label{n}": "x" for n in range(limits.TELEMETRY_LABELS_MAX + 1)}),
        Metric(name="h", histogram={}),
        Metric(name="e", exponential_histogram={}),
        Metric(name="s", summary={}),
        Metric(name="n", gauge=Gauge(data_points=[NumberDataPoint()])),
    ],
)
def test_what_is_not_kept_is_counted(metric: Metric) -> None:
    found = decode_metrics(payload(metric, gauge("b", 2)))
    assert ([point.name for point in found.points], found.left_out) == (["b"], 1)


def test_temporality_and_resource() -> None:
    found = decode_metrics(payload(counter("a", 3), counter("b", 4, CUMULATIVE, topic="t"), client_rack="r"))
    assert found.resource == {"client_rack": "r"}
    assert found.points == [MetricPoint("a", (), 3, True, True), MetricPoint("b", (("topic", "t"),), 4, True, False)]


def test_a_label_that_comes_twice_has_its_last_value() -> None:
    metric = gauge("a", 1, topic="x")
    metric.gauge.data_points[0].attributes.extend(attributes({"topic": "y"}))
    assert decode_metrics(payload(metric)).points[0].labels == (("topic", "y"),)


def test_a_number_of_more_than_64_bits_is_cut_like_the_librarys() -> None:
    value = b"\x18" + b"\xff" * 9 + b"\x7f"  # int_value of AnyValue
    attribute = b"\x0a\x01k\x12" + uvarint_bytes(len(value)) + value
    assert KeyValue.FromString(attribute).value.int_value == -1
    point = b"\x3a" + uvarint_bytes(len(attribute)) + attribute + b"\x31" + bytes(8)
    metric = gauge("a", 1)
    metric.gauge.data_points.append(NumberDataPoint.FromString(point))
    assert decode_metrics(payload(metric)).points[1].labels == (("k", "-1"),)


def test_what_clients_tell_about_themselves_is_bounded() -> None:
    pushed = b"".join(payload(**{f"name-{n}": "v"}) for n in range(limits.TELEMETRY_LABELS_MAX + 5))
    assert len(decode_metrics(pushed).resource) == limits.TELEMETRY_LABELS_MAX
