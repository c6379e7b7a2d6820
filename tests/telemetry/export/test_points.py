"""What is pushed, read by OpenTelemetry's own messages: the samples that /metrics has."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData, NumberDataPoint

from ottla.model import limits
from ottla.observe.metrics.declaration import QUANTILES, Area
from ottla.observe.metrics.exposition import Exposition
from ottla.observe.metrics.histogram import Histogram
from ottla.telemetry.export import encoding
from ottla.telemetry.export.points import Times, pushes_of

area = Area("Test", "…")
COUNTED = area.counter("ottla_counted_total", "Counted.", "topic")
GAUGED = area.gauge("ottla_gauged", "Gauged.")
TIMES = area.summary("ottla_times", "Times.", "request", unit="seconds")
RESOURCE = encoding.resource({"service.name": "ottla", "ottla.node.id": 3})
WHEN = Times(1_000, 61_000)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.one_of(st.integers(-(2**70), 2**70), st.floats())


def pushed(exposition: Exposition) -> list[bytes]:
    steps = pushes_of(exposition, RESOURCE, WHEN)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: list[bytes] = end.value
            return found


def metrics_in(bodies: list[bytes]) -> Iterator[Metric]:
    for body in bodies:
        (resource,) = MetricsData.FromString(body).resource_metrics
        told = {each.key: each.value for each in resource.resource.attributes}
        assert (told["service.name"].string_value, told["ottla.node.id"].int_value) == ("ottla", 3)
        (scope,) = resource.scope_metrics
        assert (scope.scope.name, bool(scope.scope.version)) == ("ottla", True)
        yield from scope.metrics


def value_of(point: NumberDataPoint) -> float:
    return point.as_int if point.WhichOneof("value") == "as_int" else point.as_double


@given(st.lists(st.tuples(TEXTS, VALUES), max_size=5), VALUES)
def test_counters_and_gauges(counted: list[tuple[str, float]], gauged: float) -> None:
    exposition = Exposition(100)
    for topic, value in counted:
        exposition.add(COUNTED, value, topic)
    exposition.add(GAUGED, gauged)
    found = {metric.name: metric for metric in metrics_in(pushed(exposition))}
    (point,) = found["ottla_gauged"].gauge.data_points
    assert found["ottla_gauged"].description == "Gauged."
    assert (point.time_unix_nano, point.start_time_unix_nano) == (61_000_000_000, 0)
    same(value_of(point), gauged)
    if counted:
        sum_ = found["ottla_counted_total"].sum
        assert sum_.is_monotonic
        assert sum_.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        for point, (topic, value) in zip(sum_.data_points, counted, strict=True):
            assert (point.start_time_unix_nano, point.time_unix_nano) == (1_000_000_000, 61_000_000_000)
            assert [(each.key, each.value.string_value) for each in point.attributes] == [("topic", topic)]
            same(value_of(point), value)
    assert not any(metric.unit for metric in found.values()), "receivers would append it to the name"


def same(found: float, value: float) -> None:
    """Whole numbers beyond 64 bits become floats."""
    assert found == value or found == float(value) or (isnan(found) and isnan(value))


def test_a_summary() -> None:
    recent = Histogram()
    for value in range(10):
        recent.add(value)
    exposition = Exposition(100)
    exposition.summarize(TIMES, recent, 12, 0.5, "Fetch", scale=0.5)
    (metric,) = metrics_in(pushed(exposition))
    (point,) = metric.summary.data_points
    assert (point.count, point.sum, point.start_time_unix_nano) == (12, 0.5, 1_000_000_000)
    assert [each.quantile for each in point.quantile_values] == list(QUANTILES)
    assert [each.value for each in point.quantile_values] == [each * 0.5 for each in recent.quantiles(QUANTILES)]


@pytest.mark.parametrize("room", [500, 1_000, 1_700])
def test_many_points_are_pushed_in_pieces_and_made_in_slices(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OTEL_POINTS_PER_PUSH_MAX", room)
    exposition = Exposition(100_000)
    exposition.add(GAUGED, 1)
    for number in range(4_321):
        exposition.add(COUNTED, number, str(number))
    bodies = pushed(exposition)
    sizes = [
        sum(len(each.sum.data_points) + len(each.gauge.data_points) for each in metrics_in([body])) for body in bodies
    ]
    assert sum(sizes) == 4_322
    assert max(sizes) <= room
    assert len(bodies) <= -(-4_322 // (room - 499)) if room > 500 else len(bodies) == 10
    told = [value_of(point) for each in metrics_in(bodies) for point in each.sum.data_points]
    assert told == list(range(4_321))
    assert sum(1 for _ in pushes_of(exposition, RESOURCE, WHEN)) >= 8, "slices"
