"""A push of 40,000 data points to a collector that takes them slowly: made in slices, and sent beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from tests.server.otel.odd_collector import OddCollector, odd_collector
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.model.limits import OTEL_POINTS_PER_PUSH_MAX
from ottla.observe.metrics.declaration import Area
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps, Tally

MANY = 40_000
SERIES = Area("Test", "…").counter("ottla_series_total", "…", "topic", "partition")


@pytest.fixture
def collector() -> Iterator[OddCollector]:
    with odd_collector() as collector:
        yield collector


@pytest.fixture
def node(collector: OddCollector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    settings = {"ottla.otel.endpoint": collector.endpoint, "ottla.otel.interval.ms": "3600000"}
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        yield node


def test_forty_thousand_points(node: MeasuredNode, collector: OddCollector) -> None:
    assert node.node.composed is not None
    told = node.node.composed.metrics
    assert told is not None

    def series(exposition: Exposition) -> Steps:
        tally = Tally(500)
        for number in range(MANY):
            exposition.add(SERIES, number, f"topic-{number % 100}", str(number))
            if tally.is_full():
                yield

    told._collectors = (*told._collectors, series)

    def push() -> None:
        asyncio.run_coroutine_threadsafe(told.push(), node.loop).result(120)

    def cost() -> Callback:
        collector.pushed.clear()
        return node.cost(push)

    worst = best_of(cost)
    assert worst.cpu_ms <= BUDGET_MS, worst
    sizes = [
        sum(len(metric.sum.data_points) for metric in scope.metrics)
        for pushed in collector.pushed
        for resource in MetricsData.FromString(pushed.body).resource_metrics
        for scope in resource.scope_metrics
    ]
    assert len(sizes) == 5 and sum(sizes) >= MANY and max(sizes) <= OTEL_POINTS_PER_PUSH_MAX
