"""PromQL expressions over metrics of the catalogue: a selector names only labels that its metric has."""

from __future__ import annotations

import re

from ottla.observe.metrics.declaration import QUANTILE_LABEL, Metric, MetricKind

_MATCHER = re.compile(r'(\w+)(?:=|!=|=~|!~)"[^"]*"')


class Selectors:
    """Selectors with matchers in common, which say of which nodes the dashboard or the rules tell."""

    def __init__(self, scope: str) -> None:
        self.scope = scope

    def of(self, metric: Metric, *matchers: str, window: str = "", part: str = "") -> str:
        """Select a metric. `part` is `_sum` or `_count` of a summary, `window` makes it a range."""
        if (metric.kind is MetricKind.SUMMARY) != bool(part or _has_quantile(matchers)):
            raise ValueError(f"a summary, and nothing else, has parts and quantiles: {metric.name}")
        labels = {*metric.labels, QUANTILE_LABEL} if metric.kind is MetricKind.SUMMARY else set(metric.labels)
        for matcher in matchers:
            found = _MATCHER.fullmatch(matcher)
            if found is None or found[1] not in labels:
                raise ValueError(f"{metric.name} has no label for {matcher}")
        selector = f"{metric.name}{part}{{{','.join((self.scope, *matchers))}}}"
        return f"{selector}[{window}]" if window else selector

    def rate(self, metric: Metric, *matchers: str, window: str, part: str = "") -> str:
        """By how much a counter, or the count or sum of a summary, grows in a second."""
        if metric.kind is MetricKind.GAUGE:
            raise ValueError(f"a gauge has no rate: {metric.name}")
        return f"rate({self.of(metric, *matchers, window=window, part=part)})"

    def mean(self, metric: Metric, *by: str, window: str) -> str:
        """Return the mean of a summary's values over a time, by job and these labels."""
        return (
            f"{total(self.rate(metric, window=window, part='_sum'), *by)}"
            f" / {total(self.rate(metric, window=window, part='_count'), *by)}"
        )


def _has_quantile(matchers: tuple[str, ...]) -> bool:
    return any(matcher.startswith(QUANTILE_LABEL) for matcher in matchers)


def total(expression: str, *by: str) -> str:
    return _by("sum", expression, by)


def highest(expression: str, *by: str) -> str:
    return _by("max", expression, by)


def _by(operator: str, expression: str, by: tuple[str, ...]) -> str:
    """Aggregate within one job, that is one cluster."""
    return f"{operator} by ({', '.join(('job', *by))}) ({expression})"
