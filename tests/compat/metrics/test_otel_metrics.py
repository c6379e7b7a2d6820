"""OpenTelemetry's collector takes what nodes push: every metric of /metrics, with its kind, labels and value."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, scraped
from tests.server.security.secured import Certificates
from tests.server.talk import create, produce
from tests.support import tools
from tests.support.processes.otel_collector import OtelCollector, otel_collector
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.observe.metrics.catalogue.areas import metrics
from ottla.observe.metrics.declaration import QUANTILES
from ottla.testing.broker import EmbeddedBroker

MESSAGES = "kafka_server_brokertopicmetrics_messagesin_total"
LOCAL_TIME = "kafka_network_requestmetrics_localtimems"


@pytest.fixture(autouse=True)
def _collector() -> None:
    tools.require(tools.missing_collector())


def scraped_names(broker: EmbeddedBroker) -> set[str]:
    """The names of metrics in a scrape, where a summary has three."""
    declared = {each.name for each in metrics()}
    names = {name for name, _ in scraped(broker).samples}
    return {name if name in declared else name.removesuffix("_sum").removesuffix("_count") for name in names}


def until_told(collector: OtelCollector, topic: str, messages: int) -> None:
    def told() -> float:
        found = [point for point in collector.points(MESSAGES) if point.labels == {"topic": topic}]
        return found[-1].value if found else -1

    until(told, lambda found: found == messages)


@pytest.mark.tool("OpenTelemetry collector 0.145.0, OTLP receiver")
@pytest.mark.feature("metrics that a node pushes")
def test_the_collector_knows_what_a_scrape_tells(tmp_path: Path) -> None:
    settings = ON | {"ottla.otel.interval.ms": "1000"}
    with (
        otel_collector(tmp_path / "collector") as collector,
        EmbeddedBroker(tmp_path / "data", settings | {"ottla.otel.endpoint": collector.endpoint}) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        create(connection, "t")
        produce(connection, "t", [b"x", b"y"])
        produce(connection, "missing", [b"x"])
        until_told(collector, "t", 2)
        produce(connection, "t", [b"z"])
        until_told(collector, "t", 3)
        until(lambda: scraped_names(broker) ^ collector.names(), lambda differing: not differing)

        point = collector.points(MESSAGES)[-1]
        assert (point.kind, point.metric["sum"]["isMonotonic"]) == ("sum", True)
        assert point.metric["sum"]["aggregationTemporality"] == 2, "cumulative"
        assert 0 < int(point.point["startTimeUnixNano"]) < int(point.point["timeUnixNano"])
        assert broker.node is not None
        assert point.resource["service.name"] == "ottla"
        assert point.resource["ottla.cluster.id"] == broker.node.metadata.cluster_id
        assert point.resource["ottla.node.id"] == str(broker.node.metadata.node_id)
        assert (
            point.resource["service.instance.id"]
            == f"{broker.node.metadata.cluster_id}/{point.resource['ottla.node.id']}"
        )
        assert collector.points("kafka_controller_kafkacontroller_activecontrollercount")[-1].kind == "gauge"
        times = [each for each in collector.points(LOCAL_TIME) if each.labels == {"request": "Produce"}][-1]
        assert (times.kind, int(times.point["count"])) == ("summary", 3)
        quantiles = times.point["quantileValues"]
        assert [each["quantile"] for each in quantiles] == list(QUANTILES)
        told = {each.labels["outcome"] for each in collector.points("ottla_otel_pushes_total")}
        assert told == {"accepted"}


def test_without_a_listener_metrics_are_pushed_all_the_same(tmp_path: Path) -> None:
    with otel_collector(tmp_path / "collector") as collector:
        settings = {
            "ottla.otel.interval.ms": "1000",
            "ottla.otel.endpoint": f"{collector.endpoint}/",
            "ottla.otel.service.name": "ottla-eu",
        }
        with EmbeddedBroker(tmp_path / "data", settings) as broker, RawConnection(broker.bootstrap) as connection:
            assert broker.node is not None
            assert broker.node.metrics_address is None
            create(connection, "t")
            produce(connection, "t", [b"x"])
            until_told(collector, "t", 1)
            assert collector.points(MESSAGES)[-1].resource["service.name"] == "ottla-eu"


def test_over_tls_whose_authority_is_our_own(tmp_path: Path) -> None:
    certificates = Certificates.make(tmp_path / "tls")
    node = certificates.authority.node(("127.0.0.1",))
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text(node.chain_pem)
    key.write_text(node.key_pem())
    with otel_collector(tmp_path / "collector", certificate=(chain, key)) as collector:
        settings = {
            "ottla.otel.interval.ms": "1000",
            "ottla.otel.endpoint": collector.endpoint,
            "ottla.otel.ca.file": str(certificates.trusted),
        }
        with EmbeddedBroker(tmp_path / "data", settings):
            until(lambda: collector.points("ottla_build_info"))
        strict = settings | {"ottla.otel.ca.file": ""}
        with EmbeddedBroker(tmp_path / "other", strict | {"ottla.metrics.listener": "127.0.0.1:0"}) as broker:
            failed = 'ottla_otel_pushes_total{signal="metrics",outcome="failed"}'
            until(lambda: failed in scraped(broker).text)


def test_a_collector_that_comes_late_and_goes_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.server.otel.pushes")
    with otel_collector(tmp_path / "first") as collector:
        pass
    port = int(collector.endpoint.rpartition(":")[2])
    settings = ON | {"ottla.otel.interval.ms": "1000", "ottla.otel.endpoint": collector.endpoint}
    with EmbeddedBroker(tmp_path / "data", settings) as broker, RawConnection(broker.bootstrap) as connection:

        def failed() -> float:
            found = scraped(broker).samples
            return found.get(("ottla_otel_pushes_total", (("outcome", "failed"), ("signal", "metrics"))), 0)

        create(connection, "t")
        produce(connection, "t", [b"x"])
        until(lambda: failed() >= 2)
        with otel_collector(tmp_path / "second", port=port) as second:
            until_told(second, "t", 1)
        before = failed()
        until(lambda: failed() > before)
    lines = [each.getMessage() for each in caplog.records if each.name == "ottla.server.otel.pushes"]
    assert len(lines) == 3, lines
    assert "Connection refused" in lines[0] and "again" in lines[1] and "refused" in lines[2]
