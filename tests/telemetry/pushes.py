"""Payloads of pushes, made with OpenTelemetry's own messages."""

from __future__ import annotations

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData, NumberDataPoint

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def attributes(labels: dict[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in labels.items()]


def gauge(name: str, value: float, **labels: str) -> Metric:
    metric = Metric(name=name)
    metric.gauge.data_points.append(NumberDataPoint(as_double=value, attributes=attributes(labels)))
    return metric


def counter(name: str, value: int, temporality: AggregationTemporality.ValueType = DELTA, **labels: str) -> Metric:
    metric = Metric(name=name)
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality
    metric.sum.data_points.append(NumberDataPoint(as_int=value, attributes=attributes(labels)))
    return metric


def payload(*metrics: Metric, **resource: str) -> bytes:
    data = MetricsData()
    of_resource = data.resource_metrics.add()
    of_resource.resource.attributes.extend(attributes(resource))
    of_resource.scope_metrics.add().metrics.extend(metrics)
    return data.SerializeToString()
