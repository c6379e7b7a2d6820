"""What a client pushed: OTLP's MetricsData, of which KIP-714's clients use gauges and sums.

Only what is kept is decoded. Histograms, summaries and values with labels beyond the bounds are left out and counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.model import limits
from ottla.telemetry.protobuf import EIGHT_BYTES, SIZED, VARINT, EncodedField, PayloadReader

Labels = tuple[tuple[str, str], ...]

# The ids of the fields, by message, as in opentelemetry.proto.metrics.v1.
_RESOURCE_METRICS = 1  # MetricsData
_RESOURCE, _SCOPE_METRICS = 1, 2  # ResourceMetrics
_RESOURCE_ATTRIBUTES = 1  # Resource
_METRICS = 2  # ScopeMetrics
_NAME, _GAUGE, _SUM = 1, 5, 7  # Metric
_OTHER_KINDS = (9, 10, 11)  # Metric: histogram, exponential histogram, summary
_POINTS, _TEMPORALITY, _IS_MONOTONIC = 1, 2, 3  # Gauge, Sum and the others
_POINT_DOUBLE, _POINT_INT, _POINT_ATTRIBUTES = 4, 6, 7  # NumberDataPoint
_KEY, _VALUE = 1, 2  # KeyValue
_TEXT, _TRUTH, _INT, _DOUBLE = 1, 2, 3, 4  # AnyValue
_DELTA = 1
_AS_DOUBLE, _AS_INT = struct.Struct("<d"), struct.Struct("<q")


class MetricPoint(NamedTuple):
    """One value. A counter only grows; a delta is to be added to what was pushed before."""

    name: str
    labels: Labels
    value: float
    is_counter: bool
    is_delta: bool


class PushedMetrics(NamedTuple):
    resource: dict[str, str]  # what the client tells about itself: its group, its transactional id, …
    points: list[MetricPoint]
    left_out: int  # the number of points, or of metrics of other kinds, that are not among `points`


def decode_metrics(payload: bytes) -> PushedMetrics:
    """Decode MetricsData. Raises PayloadError."""
    return _Decoder(payload).decode()


class _Decoder:
    def __init__(self, payload: bytes) -> None:
        self._reader = PayloadReader(payload)
        self._pushed = PushedMetrics({}, [], 0)
        self._left_out = 0

    def decode(self) -> PushedMetrics:
        for resource_metrics in self._messages(0, len(self._reader.payload), _RESOURCE_METRICS):
            for field in self._reader.fields(resource_metrics.at, resource_metrics.end):
                if field.kind == SIZED and field.id == _RESOURCE:
                    attributes = self._messages(field.at, field.end, _RESOURCE_ATTRIBUTES)
                    self._describe(self._labels(attributes) or {})
                elif field.kind == SIZED and field.id == _SCOPE_METRICS:
                    for metric in self._messages(field.at, field.end, _METRICS):
                        self._metric(metric)
        return self._pushed._replace(left_out=self._left_out)

    def _describe(self, attributes: dict[str, str]) -> None:
        """Note what a client tells about itself; a push may do so many times."""
        resource = self._pushed.resource
        for name, value in attributes.items():
            if name in resource or len(resource) < limits.TELEMETRY_LABELS_MAX:
                resource[name] = value

    def _messages(self, at: int, end: int, id: int) -> Iterator[EncodedField]:
        return (field for field in self._reader.fields(at, end) if field.id == id and field.kind == SIZED)

    def _metric(self, metric: EncodedField) -> None:
        name, data = "", None
        for field in self._reader.fields(metric.at, metric.end):
            if field.kind != SIZED:
                continue
            if field.id == _NAME:
                name = self._reader.text(field)
            elif field.id in (_GAUGE, _SUM, *_OTHER_KINDS):
                data = field
        if data is None:
            return
        if data.id in _OTHER_KINDS or not 0 < len(name) <= limits.TELEMETRY_NAME_CHARS_MAX:
            self._left_out += 1
            return
        is_delta = is_counter = False
        points: list[EncodedField] = []
        for field in self._reader.fields(data.at, data.end):
            if field.id == _POINTS and field.kind == SIZED:
                points.append(field)
            elif data.id == _SUM and field.kind == VARINT:
                if field.id == _TEMPORALITY:
                    is_delta = field.number == _DELTA
                elif field.id == _IS_MONOTONIC:
                    is_counter = field.number != 0
        for point in points:
            self._point(name, point, is_counter, is_delta)

    def _point(self, name: str, point: EncodedField, is_counter: bool, is_delta: bool) -> None:
        if len(self._pushed.points) >= limits.TELEMETRY_POINTS_MAX:
            self._left_out += 1
            return
        value: float | None = None
        attributes: list[EncodedField] = []
        for field in self._reader.fields(point.at, point.end):
            if field.kind == EIGHT_BYTES and field.id in (_POINT_DOUBLE, _POINT_INT):
                value = self._number(field, _AS_INT if field.id == _POINT_INT else _AS_DOUBLE)
            elif field.kind == SIZED and field.id == _POINT_ATTRIBUTES:
                attributes.append(field)
        labels = self._labels(iter(attributes))
        if value is None or labels is None:
            self._left_out += 1
        else:
            self._pushed.points.append(MetricPoint(name, tuple(sorted(labels.items())), value, is_counter, is_delta))

    def _labels(self, attributes: Iterator[EncodedField]) -> dict[str, str] | None:
        """Return names and values; None if there are too many, or too long ones."""
        labels: dict[str, str] = {}
        are_within = True
        for attribute in attributes:
            key, value = "", ""
            for field in self._reader.fields(attribute.at, attribute.end):
                if field.kind == SIZED and field.id == _KEY:
                    key = self._reader.text(field)
                elif field.kind == SIZED and field.id == _VALUE:
                    value = self._any(field)
            labels[key] = value
            are_within &= max(len(key), len(value)) <= limits.TELEMETRY_LABEL_CHARS_MAX
            are_within &= len(labels) <= limits.TELEMETRY_LABELS_MAX
            if not are_within:
                return None
        return labels

    def _any(self, value: EncodedField) -> str:
        """Return the text of a value. Lists and the like have none."""
        found = ""
        for field in self._reader.fields(value.at, value.end):
            if field.kind == SIZED and field.id == _TEXT:
                found = self._reader.text(field)
            elif field.kind == VARINT and field.id == _TRUTH:
                found = "true" if field.number else "false"
            elif field.kind == VARINT and field.id == _INT:
                found = str(field.number - (1 << 64) if field.number >> 63 else field.number)
            elif field.kind == EIGHT_BYTES and field.id == _DOUBLE:
                found = repr(self._number(field, _AS_DOUBLE))
            elif field.kind == SIZED:
                found = ""
        return found

    def _number(self, field: EncodedField, form: struct.Struct) -> float:
        (value,) = form.unpack_from(self._reader.payload, field.at)
        assert isinstance(value, float | int), "the forms have no others"
        return value
