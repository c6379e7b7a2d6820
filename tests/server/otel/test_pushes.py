"""Pushes to a collector that is slow, full or strict; settings with which a node does not start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from tests.server.metrics.scraping import ON, scraped
from tests.server.otel.odd_collector import OddCollector, odd_collector, partly_accepted
from tests.server.talk import create, produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model.errors import ApiError
from ottla.testing.broker import EmbeddedBroker

PUSHES = "ottla_otel_pushes_total"


@pytest.fixture
def collector() -> Iterator[OddCollector]:
    with odd_collector() as collector:
        yield collector


def settings(collector: OddCollector, **more: str) -> dict[str, str]:
    own = {"ottla.otel.endpoint": collector.endpoint, "ottla.otel.interval.ms": "1000"}
    return ON | own | {name.replace("_", "."): value for name, value in more.items()}


def outcome(broker: EmbeddedBroker, name: str) -> float:
    return scraped(broker).samples.get((PUSHES, (("outcome", name), ("signal", "metrics"))), 0)


def test_what_is_sent(collector: OddCollector, tmp_path: Path) -> None:
    secret = "authorization=Bearer%20abc%3D, x-scope=eu"
    own = settings(collector, ottla_otel_headers=secret)
    own["ottla.otel.endpoint"] += "/prefix/"
    with EmbeddedBroker(tmp_path / "data", own):
        first = until(lambda: collector.pushed)[0]
    assert first.path == "/prefix/v1/metrics"
    headers = {name.lower(): value for name, value in first.headers.items()}
    assert (headers["authorization"], headers["x-scope"]) == ("Bearer abc=", "eu")
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["user-agent"].startswith("ottla/")
    (resource,) = MetricsData.FromString(first.body).resource_metrics
    assert len(resource.scope_metrics[0].metrics) > 50


def test_a_collector_that_hangs_holds_up_nobody(collector: OddCollector, tmp_path: Path) -> None:
    collector.goes_on.clear()
    with (
        EmbeddedBroker(tmp_path / "data", settings(collector)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        until(lambda: collector.pushed)
        create(connection, "t")
        for _ in range(100):
            produce(connection, "t", [b"x"])
        assert scraped(broker)("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 100
        assert len(collector.pushed) == 1, "one at a time"
        begun_s = time.monotonic()
        broker.stop()
        assert collector.goes_on.is_set() is False
        assert time.monotonic() - begun_s < 8, "the node stops before the push times out"


@pytest.mark.parametrize(("status", "after"), [(503, {"Retry-After": "3600"}), (429, {}), (400, {}), (404, {})])
def test_a_collector_that_refuses(
    collector: OddCollector, tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int, after: dict[str, str]
) -> None:
    collector.status, collector.headers = status, after
    collector.body = b"\x12\x09not\xc3\xa9here"
    with EmbeddedBroker(tmp_path / "data", settings(collector)) as broker:
        until(lambda: outcome(broker, "failed"))
        if not after:
            until(lambda: outcome(broker, "failed") > 1)
    lines = [each.getMessage() for each in caplog.records if each.name == "ottla.server.otel.pushes"]
    assert lines == [f"metrics cannot be pushed to {collector.endpoint}: status {status}, not\\xe9here"]


def test_a_push_that_is_accepted_in_part(
    collector: OddCollector, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    collector.body = partly_accepted(3, "too\nold")
    with EmbeddedBroker(tmp_path / "data", settings(collector)) as broker:
        until(lambda: outcome(broker, "rejected_in_part") >= 2)
        assert outcome(broker, "failed") == 0
    lines = [each.getMessage() for each in caplog.records if each.name == "ottla.server.otel.pushes"]
    assert lines == ["metrics of this node are not accepted in part: 'too\\nold'"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ottla.otel.endpoint": "127.0.0.1:4318"}, "http://HOST:PORT"),
        ({"ottla.otel.endpoint": "grpc://127.0.0.1:4317"}, "http://HOST:PORT"),
        ({"ottla.otel.endpoint": "http://me:secret@127.0.0.1:4318"}, "ottla.otel.headers"),
        ({"ottla.otel.endpoint": "http://127.0.0.1:99999"}, "http://HOST:PORT"),
        ({"ottla.otel.endpoint": "http://127.0.0.1:4318?key=secret"}, "http://HOST:PORT"),
        (
            {"ottla.otel.endpoint": "http://collector:4318", "ottla.otel.headers": "authorization=secret"},
            "sent in plain text to collector",
        ),
        ({"ottla.otel.endpoint": "https://collector", "ottla.otel.headers": "secret"}, "entry 1 is not"),
        ({"ottla.otel.endpoint": "https://collector", "ottla.otel.headers": "a=b,c=x%0d%0asecret: y"}, "entry 2"),
        ({"ottla.otel.endpoint": "https://collector", "ottla.otel.ca.file": "/nowhere/ca.pem"}, "cannot be read"),
        ({"ottla.otel.traces.ratio": "0.1"}, "needs ottla.otel.endpoint"),
        ({"ottla.otel.endpoint": "http://localhost", "ottla.otel.traces.ratio": "1.5"}, "no more than 1"),
    ],
)
def test_settings_with_which_a_node_does_not_start(wrong: dict[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(ApiError, match=words) as raised:
        EmbeddedBroker(tmp_path / "data", wrong).start()
    assert "secret" not in str(raised.value)
