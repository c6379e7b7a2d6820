"""`Area`: declares metrics and keeps them together, in the order written.

A module of the catalogue makes one area, and one constant per metric, as settings do:

    replica_manager = Area("Partitions", "…")
    UNDER_REPLICATED = replica_manager.gauge("kafka_server_…", "Partitions that …", mbean="kafka.server:type=…")

The endpoint, docs/metrics.md and the tests are derived from these declarations: a sample of a metric that is not
declared cannot be exposed. A metric that Kafka has, too, names its MBean, and is called what the Prometheus JMX
exporter calls it with its example rules for Kafka, in lower case; the names of all others begin with `ottla_`.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

# Of every summary. Kafka has the same percentiles.
QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
QUANTILE_LABEL = "quantile"

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
# Names by Prometheus' own convention, which every process has.
_STANDARD = "process_"


class MetricKind(Enum):
    COUNTER = "counter"  # only grows; begins anew with the process
    GAUGE = "gauge"
    SUMMARY = "summary"  # quantiles of the last minutes, and number and sum since the start


class Metric(NamedTuple):
    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    unit: str  # "" for a plain number
    help: str
    mbean: str  # Kafka's name of it; "" if Kafka has none


class Area:
    """The metrics of one concern."""

    def __init__(self, title: str, doc: str) -> None:
        self.title = title
        self.doc = doc
        self.metrics: list[Metric] = []

    def counter(self, name: str, help: str, *labels: str, unit: str = "", mbean: str = "") -> Metric:
        if not name.endswith("_total"):
            raise ValueError(f"the name of a counter ends with _total: {name}")
        return self._add(Metric(name, MetricKind.COUNTER, labels, unit, help, mbean))

    def gauge(self, name: str, help: str, *labels: str, unit: str = "", mbean: str = "") -> Metric:
        return self._add(Metric(name, MetricKind.GAUGE, labels, unit, help, mbean))

    def summary(self, name: str, help: str, *labels: str, unit: str, mbean: str = "") -> Metric:
        return self._add(Metric(name, MetricKind.SUMMARY, labels, unit, help, mbean))

    def _add(self, metric: Metric) -> Metric:
        for name in (metric.name, *metric.labels):
            if not _NAME.match(name):
                raise ValueError(f"no name for a metric or a label: {name}")
        if not metric.name.startswith("kafka_" if metric.mbean else ("ottla_", _STANDARD)):
            raise ValueError(f"its name begins with kafka_ if it has an MBean, else with ottla_: {metric.name}")
        self.metrics.append(metric)
        return metric
