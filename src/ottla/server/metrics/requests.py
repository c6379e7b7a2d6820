"""Requests by API, their times and errors, and the waits of clients over a quota."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.model.errors import ErrorCode
from ottla.observe.metrics.catalogue import connections as of_clients
from ottla.observe.metrics.catalogue import requests as told
from ottla.observe.metrics.declaration import Metric
from ottla.observe.metrics.exposition import Exposition
from ottla.observe.metrics.histogram import Histogram, RecentHistogram
from ottla.server.api.request_counts import RequestCounts, RouteCounts
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
        for name, routes in sorted(by_name.items()):
            for route in routes:
                count = route.at_once.all.count + route.begun.all.count
                exposition.add(told.REQUESTS, count, name, str(route.version))
            _tell_errors(name, routes, exposition)
            here = [each for route in routes for each in (route.at_once, route.begun)]
            _summarize(exposition, told.LOCAL_TIME, here, name)
            answered = [each for route in routes for each in (route.at_once, route.waited)]
            _summarize(exposition, told.TOTAL_TIME, answered, name)
            yield
        for name, throttled in self._quotas.throttles.by_request.items():
            every, recent = throttled.all, throttled.recent()
            sum_s = every.sum * _S_PER_MS
            exposition.summarize(of_clients.THROTTLED, recent, every.count, sum_s, name, scale=_S_PER_MS)


def _summarize(exposition: Exposition, metric: Metric, parts: Iterable[RecentHistogram], name: str) -> None:
    recent, count, sum_us = Histogram(), 0, 0
    for each in parts:
        recent.merge(each.recent())
        count += each.all.count
        sum_us += each.all.sum
    exposition.summarize(metric, recent, count, sum_us * _MS_PER_US, name, scale=_MS_PER_US)


def _tell_errors(name: str, routes: list[RouteCounts], exposition: Exposition) -> None:
    errors: dict[int, int] = {}
    for route in routes:
        for code, count in route.errors.items():
            errors[code] = errors.get(code, 0) + count
    for code, count in sorted(errors.items()):
        exposition.add(told.ERRORS, count, name, _error_name(code))


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:  # of a newer release, in an answer that was passed on
        return str(code)
