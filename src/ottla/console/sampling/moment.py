"""A moment of a cluster: the figures that charts draw, made from two samples. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model import limits
from ottla.observe.metrics.catalogue import topics as of_topics
from ottla.observe.metrics.request_names import PARTS_OF_FETCH
from ottla.operations.metrics.samples import MetricSamples
from ottla.operations.sampling.rates import Cell, Row, per_second, rows
from ottla.operations.sampling.sample import TopSample, TopView


class ApiMoment(NamedTuple):
    """The requests of one API: how many per second, how many errors, and the 99th percentile of their time."""

    api: str
    per_s: float
    errors_per_s: float
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class ClusterMoment:
    """Figures per second; None is not known. `lags` has the worst groups, in seconds, by name."""

    at_s: float
    bytes_in: float | None = None
    bytes_out: float | None = None
    records_in: float | None = None
    apis: tuple[ApiMoment, ...] = ()
    lags: Mapping[str, float] = field(default_factory=dict)

    @property
    def requests(self) -> float | None:
        """Fetch is told as a whole and in parts; the parts do not count."""
        return sum(each.per_s for each in self._whole) if self.apis else None

    @property
    def errors(self) -> float | None:
        return sum(each.errors_per_s for each in self._whole) if self.apis else None

    @property
    def _whole(self) -> list[ApiMoment]:
        return [each for each in self.apis if each.api not in PARTS_OF_FETCH]

    def p99_ms(self, api: str) -> float | None:
        return next((each.p99_ms for each in self.apis if each.api == api), None)


def moment_of(before: TopSample, now: TopSample, lags: Mapping[str, float]) -> ClusterMoment:
    """The moment of two samples of the view `brokers`, where the nodes tell their metrics."""
    elapsed_s = now.at_s - before.at_s

    def growth(name: str) -> float | None:
        both = [(before.metrics[node], told) for node, told in now.metrics.items() if node in before.metrics]
        return sum(_grown(first, then, name, elapsed_s) for first, then in both) if both else None

    found = sorted(map(_api, rows(TopView.REQUESTS, before, now)), key=lambda each: -each.per_s)
    return ClusterMoment(
        now.at_s,
        growth(of_topics.BYTES_IN.name),
        growth(of_topics.BYTES_OUT.name),
        growth(of_topics.MESSAGES_IN.name),
        tuple(found[: limits.CONSOLE_APIS]),
        lags,
    )


def moment_of_offsets(before: TopSample, now: TopSample, lags: Mapping[str, float]) -> ClusterMoment:
    """The moment of two samples of the view `topics`: what was written is known by offsets and sizes, all else not."""
    found = rows(TopView.TOPICS, before, now)
    return ClusterMoment(now.at_s, _sum(found, "bytes/s"), None, _sum(found, "records/s"), (), lags)


def worst_lags(groups: Iterable[Row]) -> dict[str, float]:
    """The groups that are furthest behind, in seconds."""
    known = [(str(row["group"]), float(row["seconds"])) for row in groups if isinstance(row["seconds"], int | float)]
    known.sort(key=lambda each: -each[1])
    return dict(known[: limits.CONSOLE_DRAWN_GROUPS])


def points(
    moments: Iterable[ClusterMoment], value: Callable[[ClusterMoment], float | None]
) -> list[tuple[float, float | None]]:
    """A line of a chart."""
    return [(each.at_s, value(each)) for each in moments]


def _grown(first: MetricSamples, then: MetricSamples, name: str, elapsed_s: float) -> float:
    return per_second(sum(grown for _, grown in then.growth(first, name)), elapsed_s) or 0.0


def _api(row: Row) -> ApiMoment:
    return ApiMoment(
        str(row["request"]), _number(row["req/s"]) or 0.0, _number(row["err/s"]) or 0.0, _number(row["p99 ms"])
    )


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


def _sum(found: Iterable[Row], column: str) -> float | None:
    values = [float(cell) for row in found if isinstance(cell := row[column], int | float)]
    return sum(values) if values else None
