"""Exposition: the samples of one collection of metrics, and Prometheus' text format (version 0.0.4) of them.

Samples are added in any order; those of one metric are kept together, as the format wants it. Their number is bounded:
what is beyond the bound is left out and counted. The same samples are pushed as OTLP (`telemetry/export/points.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isnan
from typing import NamedTuple

from ottla.model import limits
from ottla.observe.metrics.declaration import QUANTILE_LABEL, QUANTILES, Metric, MetricKind
from ottla.observe.metrics.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PUSHED = "Pushed by clients (KIP-714)."
_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})


class SummaryValue(NamedTuple):
    """The value of a summary: the values of `QUANTILES`, and number and total of all values since the start."""

    quantiles: tuple[float, ...]
    number: int
    total: float


class MetricSample(NamedTuple):
    """One value of a metric, with the names and values of its labels."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    value: float | SummaryValue


_SUMMARY_LINES = len(QUANTILES) + 2


class Exposition:
    def __init__(self, samples_max: int) -> None:
        self.left_out = 0  # the number of samples that were too many
        self._room = samples_max
        self._samples: dict[Metric, list[MetricSample]] = {}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add the value of a counter or gauge, with the values of its labels in the order of the declaration."""
        assert metric.kind is not MetricKind.SUMMARY, f"{metric.name} is a summary"
        self._add(metric, MetricSample(metric.labels, labels, value), 1)

    def add_pushed(self, name: str, value: float, labels: Sequence[tuple[str, str]], *, is_counter: bool) -> None:
        """Add a value that a client pushed, which has no declaration. All of one name must be of one kind."""
        kind = MetricKind.COUNTER if is_counter else MetricKind.GAUGE
        names, texts = tuple(name for name, _ in labels), tuple(text for _, text in labels)
        self._add(Metric(name, kind, (), "", _PUSHED, ""), MetricSample(names, texts, value), 1)

    def summarize(
        self, metric: Metric, recent: Histogram, count: int, sum_: float, *labels: str, scale: float = 1
    ) -> None:
        """Add a summary: quantiles of `recent`, whose values are multiplied by `scale`, and number and sum of all
        values. Nothing is told of what never happened.
        """
        assert metric.kind is MetricKind.SUMMARY, f"{metric.name} is none"
        if count:
            quantiles = tuple(value * scale for value in recent.quantiles(QUANTILES))
            self._add(metric, MetricSample(metric.labels, labels, SummaryValue(quantiles, count, sum_)), _SUMMARY_LINES)

    def _add(self, metric: Metric, sample: MetricSample, lines: int) -> None:
        assert len(sample.names) == len(sample.labels), f"{metric.name} has labels {', '.join(sample.names)}"
        if lines > self._room:
            self.left_out += lines
            return
        self._room -= lines
        found = self._samples.get(metric)
        if found is None:
            found = self._samples[metric] = []
        found.append(sample)

    @property
    def samples(self) -> Mapping[Metric, Sequence[MetricSample]]:
        """The samples by metric."""
        return self._samples

    @property
    def metrics(self) -> frozenset[Metric]:
        """The metrics that have a sample."""
        return frozenset(self._samples)

    def chunks(self) -> Iterator[bytes]:
        """Yield the text, one metric after the other, in the order of their names: a slice's work at a time."""
        for metric in sorted(self._samples, key=lambda each: each.name):
            text = (
                f"# HELP {metric.name} {metric.help.translate(_HELP_ESCAPES)}\n"
                f"# TYPE {metric.name} {metric.kind.value}\n"
            )
            samples = iter(self._samples[metric])
            while some := tuple(islice(samples, limits.METRICS_PER_SLICE)):
                text += "".join([_lines(metric.name, each) for each in some])
                yield text.encode("utf-8", "replace")
                text = ""


def _lines(name: str, sample: MetricSample) -> str:
    """Return the lines of one sample."""
    names, labels, value = sample
    told = ",".join([f'{label}="{text.translate(_LABEL_ESCAPES)}"' for label, text in zip(names, labels, strict=True)])
    if not isinstance(value, SummaryValue):
        return f"{name}{{{told}}} {_number(value)}\n" if told else f"{name} {_number(value)}\n"
    before = f"{told}," if told else ""
    lines = [
        f'{name}{{{before}{QUANTILE_LABEL}="{_quantile(quantile)}"}} {_number(found)}\n'
        for quantile, found in zip(QUANTILES, value.quantiles, strict=True)
    ]
    around = f"{{{told}}}" if told else ""
    lines += f"{name}_sum{around} {_number(value.total)}\n", f"{name}_count{around} {_number(value.number)}\n"
    return "".join(lines)


def _quantile(quantile: float) -> str:
    """Return a quantile as Kafka's percentiles are told: 0.50, 0.999."""
    return f"{quantile:.2f}" if quantile * 100 % 1 == 0 else f"{quantile}"


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if isnan(value):
        return "NaN"
    if value in (inf, -inf):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
