"""A collection of metrics as OTLP's MetricsData: counters as cumulative sums, gauges, summaries.

Metrics have the names and labels that /metrics has, so that dashboards and alerts find them by either way. Units are
left out: receivers would append them to the names.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from ottla.model import limits
from ottla.observe.metrics.declaration import QUANTILES, Metric, MetricKind
from ottla.observe.metrics.exposition import Exposition, MetricSample, SummaryValue
from ottla.telemetry.export import encoding

# The ids of the fields, by message, as in opentelemetry.proto.metrics.v1.
_RESOURCE_METRICS = 1  # MetricsData
_RESOURCE, _SCOPE_METRICS = 1, 2  # ResourceMetrics
_SCOPE, _METRICS = 1, 2  # ScopeMetrics
_NAME, _DESCRIPTION, _GAUGE, _SUM, _SUMMARY = 1, 2, 5, 7, 11  # Metric
_POINTS, _TEMPORALITY, _IS_MONOTONIC = 1, 2, 3  # Gauge, Sum, SummaryValue
_START, _TIME, _AS_DOUBLE, _AS_INT, _LABELS = 2, 3, 4, 6, 7  # NumberDataPoint
_COUNT, _TOTAL, _QUANTILES = 4, 5, 6  # SummaryDataPoint, whose other fields are those of NumberDataPoint
_QUANTILE, _QUANTILE_VALUE = 1, 2  # ValueAtQuantile
_CUMULATIVE = 2
_NS_PER_MS = 1_000_000


class Times(NamedTuple):
    """When the counters began to count, and when they were read."""

    start_ms: int
    now_ms: int


def pushes_of(exposition: Exposition, resource: bytes, times: Times) -> Generator[None, None, list[bytes]]:
    """Return MetricsData in pieces of at most `OTEL_POINTS_PER_PUSH_MAX` points; yield where a slice ends."""
    pushes: list[bytes] = []
    some: list[bytes] = []
    room, left = limits.OTEL_POINTS_PER_PUSH_MAX, limits.METRICS_PER_SLICE
    for metric, samples in tuple(exposition.samples.items()):
        for at in range(0, len(samples), limits.METRICS_PER_SLICE):
            piece = samples[at : at + limits.METRICS_PER_SLICE]
            if len(piece) > room:
                pushes.append(_data(some, resource))
                some, room = [], limits.OTEL_POINTS_PER_PUSH_MAX
            some.append(_metric(metric, piece, times))
            room -= len(piece)
            left -= len(piece)
            if left <= 0:
                left = limits.METRICS_PER_SLICE
                yield
    if some:
        pushes.append(_data(some, resource))
    return pushes


def _data(metrics: Sequence[bytes], resource: bytes) -> bytes:
    told = encoding.sized(_SCOPE, encoding.scope())
    told += b"".join([encoding.sized(_METRICS, each) for each in metrics])
    return encoding.sized(_RESOURCE_METRICS, encoding.sized(_RESOURCE, resource) + encoding.sized(_SCOPE_METRICS, told))


def _metric(metric: Metric, samples: Sequence[MetricSample], times: Times) -> bytes:
    since = encoding.fixed(_TIME, times.now_ms * _NS_PER_MS)
    if metric.kind is not MetricKind.GAUGE:
        since = encoding.fixed(_START, times.start_ms * _NS_PER_MS) + since
    told = b"".join([encoding.sized(_POINTS, _point(each, since)) for each in samples])
    if metric.kind is MetricKind.COUNTER:
        told += encoding.number(_TEMPORALITY, _CUMULATIVE) + encoding.number(_IS_MONOTONIC, 1)
        kind = _SUM
    else:
        kind = _GAUGE if metric.kind is MetricKind.GAUGE else _SUMMARY
    return encoding.text(_NAME, metric.name) + encoding.text(_DESCRIPTION, metric.help) + encoding.sized(kind, told)


def _point(sample: MetricSample, since: bytes) -> bytes:
    value = sample.value
    told = since + encoding.attributes(_LABELS, zip(sample.names, sample.labels, strict=True))
    if isinstance(value, SummaryValue):
        told += encoding.fixed(_COUNT, value.number) + encoding.double(_TOTAL, value.total)
        for quantile, found in zip(QUANTILES, value.quantiles, strict=True):
            at = encoding.double(_QUANTILE, quantile) + encoding.double(_QUANTILE_VALUE, found)
            told += encoding.sized(_QUANTILES, at)
        return told
    if encoding.fits_int64(value):
        return told + encoding.signed(_AS_INT, int(value))
    return told + encoding.double(_AS_DOUBLE, float(value))
