"""Requests by API, their times and errors, and the waits of clients over a quota."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.model.errors import ErrorCode
from ottla.observe.metrics.catalogue import connections as of_clients
from ottla.observe.metrics.catalogue import requests as told
from ottla.observe.metrics.declaration import Metric
from ottla.observe.metrics.exposition import Exposition
from ottla.observe.metrics.histogram import Histogram, RecentHistogram
from ottla.observe.metrics.request_names import FETCH, NO_ERROR, PARTS_OF_FETCH
from ottla.server.api.request_counts import Phase, RequestCounts, RouteCounts
from ottla.server.loop.slices import Steps
from ottla.server.quotas.client_quotas import ClientQuotas

_MS_PER_US = 0.001
_S_PER_MS = 0.001


class RequestsCollector:
    def __init__(self, counts: RequestCounts, quotas: ClientQuotas) -> None:
        self._counts = counts
        self._quotas = quotas

    def turn(self) -> None:
        """Begin another interval of the quantiles."""
        self._counts.turn()
        self._quotas.throttles.turn()

    def collect(self, exposition: Exposition) -> Steps:
        by_name: dict[str, list[RouteCounts]] = {}
        for route in self._counts.routes.values():
            by_name.setdefault(route.name, []).append(route)
            if route.name in PARTS_OF_FETCH:
                by_name.setdefault(FETCH, []).append(route)
        for name, routes in sorted(by_name.items()):
            versions: dict[int, int] = {}
            for route in routes:
                count = route.at_once.all.count + route.begun.all.count
                versions[route.version] = versions.get(route.version, 0) + count
            if not any(versions.values()):
                continue  # consumers fetch here and no followers, or the other way round
            for version, count in versions.items():
                exposition.add(told.REQUESTS, count, name, str(version))
            _tell_errors(name, routes, exposition)
            yield
            yield from _tell_times(name, routes, exposition)
        for name, throttled in self._quotas.throttles.by_request.items():
            every, recent = throttled.all, throttled.recent()
            sum_s = every.sum * _S_PER_MS
            exposition.summarize(of_clients.THROTTLED, recent, every.count, sum_s, name, scale=_S_PER_MS)


def _tell_times(name: str, routes: Sequence[RouteCounts], exposition: Exposition) -> Steps:
    at_once = [route.at_once for route in routes]
    handled = [*at_once, *(route.begun for route in routes)]
    answered = [*at_once, *(route.waited for route in routes)]
    _summarize(exposition, told.LOCAL_TIME, handled, name)
    _summarize(exposition, told.TOTAL_TIME, answered, name)
    yield
    _summarize(exposition, told.REMOTE_TIME, [route.remote for route in routes], name, of=answered)
    for metric, phase, those in (
        (told.QUEUE_TIME, Phase.QUEUED, handled),
        (told.ANSWER_QUEUE_TIME, Phase.HELD, answered),
        (told.SEND_TIME, Phase.SENT, answered),
    ):
        _summarize(
            exposition, metric, [found for route in routes if (found := route.phases[phase]) is not None], name, those
        )
        yield


def _summarize(
    exposition: Exposition,
    metric: Metric,
    parts: Iterable[RecentHistogram],
    name: str,
    of: Sequence[RecentHistogram] = (),
) -> None:
    """Tell the sum of several histograms; the values of `of` that have none in them count as 0."""
    recent, count, sum_us = Histogram(), 0, 0
    for each in parts:
        recent.merge(each.recent())
        count += each.all.count
        sum_us += each.all.sum
    every = sum(each.all.count for each in of)
    recent.counts[0] += max(sum(each.recent().count for each in of) - recent.count, 0)
    count += max(every - count, 0)
    exposition.summarize(metric, recent, count, sum_us * _MS_PER_US, name, scale=_MS_PER_US)


def _tell_errors(name: str, routes: list[RouteCounts], exposition: Exposition) -> None:
    errors: dict[int, int] = {}
    for route in routes:
        for code, count in route.errors.items():
            errors[code] = errors.get(code, 0) + count
    for code, count in sorted(errors.items()):
        exposition.add(told.ERRORS, count, name, _error_name(code))
    answered = sum(route.at_once.all.count + route.waited.all.count for route in routes)
    other = sum(route.failing + route.elsewhere for route in routes)
    exposition.add(told.ERRORS, answered - other, name, NO_ERROR)


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # of a newer release, in an answer that was passed on
        return str(code)
