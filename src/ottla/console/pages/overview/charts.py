"""The charts of the overview: bytes, records, requests, latency, and the lag of the worst groups."""

from __future__ import annotations

from collections.abc import Callable

from ottla.console.html import Markup, tag
from ottla.console.parts.charts import Line, line_chart
from ottla.console.parts.times import bytes_per_s, ms_text, per_s, seconds_text
from ottla.console.parts.words import card, visible
from ottla.console.sampling.history import ClusterHistory
from ottla.console.sampling.moment import ClusterMoment, points
from ottla.observe.metrics.request_names import FETCH_CONSUMER

_PRODUCE = "Produce"


def charts(history: ClusterHistory) -> list[Markup]:
    """A card for each kind of charts; those that no node tells are left out."""
    moments = list(history.moments)
    written = line_chart(
        "Bytes",
        [Line("written", points(moments, _bytes_in)), *_if_told(moments, "read", lambda each: each.bytes_out)],
        bytes_per_s,
    )
    records = line_chart("Records written", [Line("records", points(moments, _records_in))], per_s)
    drawn = [card("Throughput", written, records)]
    if history.has_metrics:
        requests = line_chart(
            "Requests",
            [
                Line("requests", points(moments, lambda each: each.requests)),
                Line("errors", points(moments, lambda each: each.errors)),
            ],
            per_s,
        )
        latency = line_chart(
            "99th percentile of the time of a request",
            [
                Line("produce", points(moments, lambda each: each.p99_ms(_PRODUCE))),
                Line("fetch of a consumer", points(moments, lambda each: each.p99_ms(FETCH_CONSUMER))),
            ],
            ms_text,
        )
        drawn.append(card("Requests", requests, latency))
    drawn.append(card("Lag", _lags(moments)))
    return drawn


def _lags(moments: list[ClusterMoment]) -> Markup:
    """Lines for the groups that were worst in the last moment."""
    last = next((each.lags for each in reversed(moments) if each.lags), {})
    if not last:
        return tag("p", "No group has committed offsets yet.", class_="empty")
    lines = [Line(visible(name), points(moments, lambda each, name=name: each.lags.get(name))) for name in last]  # type: ignore[misc]
    return line_chart("Seconds that unread records have waited: the worst groups", lines, seconds_text)


def _bytes_in(moment: ClusterMoment) -> float | None:
    return moment.bytes_in


def _records_in(moment: ClusterMoment) -> float | None:
    return moment.records_in


def _if_told(moments: list[ClusterMoment], name: str, value: Callable[[ClusterMoment], float | None]) -> list[Line]:
    found = points(moments, value)
    return [Line(name, found)] if any(each is not None for _, each in found) else []
