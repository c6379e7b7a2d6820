"""RegistryMetrics: the requests of one registry process by route, their times and errors, in Prometheus' format."""

from __future__ import annotations

import time
from collections import Counter
from typing import Final

from starlette.responses import Response

from ottla.model import limits
from ottla.observe.metrics.catalogue import registry as told
from ottla.observe.metrics.exposition import CONTENT_TYPE, Exposition
from ottla.observe.metrics.histogram import RecentHistogram
from ottla.registry.port import RegistryStorePort
from ottla.schemas.registry.machine import RegistryMachine

PATH: Final = b"/metrics"
# In place of the method and the path of requests that no route takes, which are as many as anybody likes.
OTHER: Final = "(other)"

_Route = tuple[str, str]  # a method and the pattern of a path


class RegistryMetrics:
    def __init__(self) -> None:
        self._times: dict[_Route, RecentHistogram] = {}  # in microseconds
        self._errors: Counter[tuple[_Route, int]] = Counter()
        self._turned_s = time.monotonic()

    def answered(self, route: _Route, status: int, took_s: float) -> None:
        """Count a request. The routes are those of the table, so they are few."""
        times = self._times.get(route)
        if times is None:
            times = self._times[route] = RecentHistogram()
        times.all.add(int(took_s * 1e6))
        if status >= 400:
            self._errors[route, status] += 1
        self._turn_when_due()

    def _turn_when_due(self) -> None:
        now_s = time.monotonic()
        if now_s - self._turned_s >= limits.METRICS_WINDOW_MS / 1000:
            self._turned_s = now_s
            for times in self._times.values():
                times.turn()

    async def tell(self, store: RegistryStorePort) -> Response:
        self._turn_when_due()
        exposition = Exposition(limits.METRICS_SAMPLES_MAX)
        for route, times in sorted(self._times.items()):
            count = times.all.count
            exposition.add(told.REQUESTS, count, *route)
            exposition.summarize(told.TIME, times.recent(), count, times.all.sum / 1e6, *route, scale=1e-6)
        for (route, status), count in sorted(self._errors.items()):
            exposition.add(told.ERRORS, count, *route, str(status))
        subjects, versions = await store.in_thread(_sizes)
        exposition.add(told.SUBJECTS, subjects)
        exposition.add(told.SCHEMAS, versions)
        return Response(b"".join(exposition.chunks()), media_type=CONTENT_TYPE)


def _sizes(machine: RegistryMachine) -> tuple[int, int]:
    subjects = machine.state.subjects
    return len(subjects), sum(map(len, subjects.values()))
