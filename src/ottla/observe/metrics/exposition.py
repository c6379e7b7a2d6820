"""Exposition: the samples of one scrape in Prometheus' text format (version 0.0.4).

Samples are added in any order; the text has those of one metric together, as the format wants it. The number of samples
is bounded: what is beyond the bound is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isnan

from ottla.observe.metrics.declaration import QUANTILE_LABEL, QUANTILES, Metric, MetricKind
from ottla.observe.metrics.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PUSHED = "Pushed by clients (KIP-714)."
_LABEL_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_HELP_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n"})


class Exposition:
    def __init__(self, samples_max: int) -> None:
        self.left_out = 0  # the number of samples that were too many
        self._room = samples_max
        self._lines: dict[Metric, list[str]] = {}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Add the value of a counter or gauge, with the values of its labels in the order of the declaration."""
        assert metric.kind is not MetricKind.SUMMARY, f"{metric.name} is a summary"
        self._line(metric, "", metric.labels, labels, value)

    def add_pushed(self, name: str, value: float, labels: Sequence[tuple[str, str]], *, is_counter: bool) -> None:
        """Add a value that a client pushed, which has no declaration. All of one name must be of one kind."""
        kind = MetricKind.COUNTER if is_counter else MetricKind.GAUGE
        metric = Metric(name, kind, (), "", _PUSHED, "")
        self._line(metric, "", tuple(name for name, _ in labels), tuple(value for _, value in labels), value)

    def summarize(
        self, metric: Metric, recent: Histogram, count: int, sum_: float, *labels: str, scale: float = 1
    ) -> None:
        """Add a summary: quantiles of `recent`, whose values are multiplied by `scale`, and number and sum of all
        values. Nothing is told of what never happened.
        """
        assert metric.kind is MetricKind.SUMMARY, f"{metric.name} is none"
        if not count:
            return
        names = (*metric.labels, QUANTILE_LABEL)
        for quantile, value in zip(QUANTILES, recent.quantiles(QUANTILES), strict=True):
            self._line(metric, "", names, (*labels, _quantile(quantile)), value * scale)
        self._line(metric, "_sum", metric.labels, labels, sum_)
        self._line(metric, "_count", metric.labels, labels, count)

    def _line(self, metric: Metric, suffix: str, names: tuple[str, ...], labels: tuple[str, ...], value: float) -> None:
        if not self._room:
            self.left_out += 1
            return
        self._room -= 1
        if names:
            told = ",".join(
                f'{name}="{label.translate(_LABEL_ESCAPES)}"' for name, label in zip(names, labels, strict=True)
            )
            line = f"{metric.name}{suffix}{{{told}}} {_number(value)}\n"
        else:
            assert not labels, f"{metric.name} has no labels"
            line = f"{metric.name}{suffix} {_number(value)}\n"
        found = self._lines.get(metric)
        if found is None:
            found = self._lines[metric] = []
        found.append(line)

    @property
    def metrics(self) -> frozenset[Metric]:
        """The metrics that have a sample."""
        return frozenset(self._lines)

    def chunks(self) -> Iterator[bytes]:
        """Yield the text, one metric at a time, in the order of their names."""
        for metric in sorted(self._lines, key=lambda each: each.name):
            head = (
                f"# HELP {metric.name} {metric.help.translate(_HELP_ESCAPES)}\n"
                f"# TYPE {metric.name} {metric.kind.value}\n"
            )
            yield "".join((head, *self._lines[metric])).encode("utf-8", "replace")


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
