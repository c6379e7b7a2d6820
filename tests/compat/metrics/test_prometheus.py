"""A real Prometheus scrapes a node and answers questions about it; promtool has nothing to say against its metrics."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, scraped
from tests.server.security.secured import Certificates
from tests.server.talk import create, produce
from tests.support import tools
from tests.support.processes.prometheus import Prometheus
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla import Blocking
from ottla.testing.broker import EmbeddedBroker

# Kafka's name, which its dashboards use, and which Prometheus would have chosen otherwise.
KAFKAS = "kafka_server_socket_server_metrics_connection_count"
MESSAGES = "kafka_server_brokertopicmetrics_messagesin_total"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    tools.require(tools.missing_prometheus())
    with EmbeddedBroker(tmp_path / "data", ON) as broker:
        yield broker


def test_promtool_finds_only_a_name_of_kafka(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"x"])
        produce(connection, "missing", [b"x"])
    text = scraped(broker).text
    found = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr.splitlines()) == (
        "",
        [f'{KAFKAS} non-histogram and non-summary metrics should not have "_count" suffix'],
    )


def test_prometheus_scrapes_and_answers(broker: EmbeddedBroker, tmp_path: Path) -> None:
    assert broker.node is not None
    assert broker.node.metrics_address is not None
    host, port = broker.node.metrics_address
    with (
        RawConnection(broker.bootstrap) as connection,
        Prometheus(tmp_path / "prometheus", [f"{host}:{port}"]) as asked,
    ):
        create(connection, "t")
        produce(connection, "t", [b"x", b"y"])
        asked.until_scraped()
        until(lambda: asked.query(MESSAGES), lambda found: found == {"topic=t": 2})
        # Rates that dashboards draw, over more than two scrapes.
        rate = f"sum(increase({MESSAGES}[10s]))"
        produced = iter(range(10_000))

        def grows() -> float:
            produce(connection, "t", [str(next(produced)).encode()])
            return sum(asked.query(rate).values())

        until(grows, lambda increase: increase > 0)
        quantile = 'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}'
        (took_ms,) = asked.query(quantile).values()
        assert took_ms > 0
        assert asked.query("sum(kafka_controller_kafkacontroller_activecontrollercount)") == {"": 1}
        assert asked.query("kafka_server_replicamanager_underreplicatedpartitions") == {"": 0}
        assert asked.query("up") == {"": 1}


def test_prometheus_scrapes_over_tls_as_a_user(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())
    certificates = Certificates.make(tmp_path / "tls")
    tls = {f"listener.name.metrics.{name}": value for name, value in certificates.node().items()}
    with EmbeddedBroker(tmp_path / "data", {"ottla.metrics.listener": "HTTPS://127.0.0.1:0"} | tls) as broker:
        assert broker.node is not None
        assert broker.node.metrics_address is not None
        host, port = broker.node.metrics_address
        with Blocking(broker.bootstrap) as client:
            client.admin.users.set_password("prometheus", "secret")
        scheme, trusts = "scheme: https", f"tls_config: {{ca_file: {certificates.trusted}}}"
        users = [f"basic_auth: {{username: prometheus, password: {each}}}" for each in ("secret", "wrong")]
        with Prometheus(tmp_path / "prometheus", [f"{host}:{port}"], scheme, trusts, users[0]) as asked:
            asked.until_scraped()
            until(lambda: asked.query("ottla_build_info"), len)
        with Prometheus(tmp_path / "other", [f"{host}:{port}"], scheme, trusts, users[1]) as asked:
            until(asked.health, lambda found: "401" in "".join(found))
