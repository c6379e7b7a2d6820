"""`ottla client list`: clients that push telemetry, from the metrics of the nodes."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
from tests.cli.conftest import Run, invoke
from tests.server.metrics.scraping import ON
from tests.support.ports import free_ports
from tests.support.waiting import until

from ottla.observe.metrics.catalogue.clients import CLIENT, LAST_PUSH
from ottla.operations.metrics.samples import MetricSamples
from ottla.operations.sampling.clients import pushing_clients
from ottla.testing.broker import EmbeddedBroker


def listed(broker: EmbeddedBroker, *words: str) -> Run:
    return invoke("client", "list", *words, env={"OTTLA_BOOTSTRAP": broker.bootstrap})


def test_a_client_that_pushes(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", {**ON, "ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"}) as broker:
        nobody = listed(broker)
        assert nobody.code == 0 and "no client pushes telemetry: `ottla config set client-metrics" in nobody.err
        words = ["config", "set", "client-metrics", "all", "metrics=*", "interval.ms=200"]
        assert invoke(*words, env={"OTTLA_BOOTSTRAP": broker.bootstrap}).code == 0
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "client.id": "orders", "enable.metrics.push": True}
        )
        producer.produce("t", b"x")
        producer.flush()

        def rows() -> list[dict[str, object]]:
            producer.poll(0)
            found: list[dict[str, object]] = listed(broker, "--json").json
            return found

        (row,) = until(rows, len)
        assert (row["client"], row["software"], row["address"]) == ("orders", "confluent-kafka-python", "127.0.0.1")
        assert row["node"] == 1 and row["version"] and row["instance"] and isinstance(row["seconds"], float)
        head, line = listed(broker).lines
        assert head.split("\t")[0] == "client" and line.startswith("orders\tconfluent-kafka-python\t")


def test_a_cluster_that_tells_no_metrics(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        refused = listed(broker)
        assert refused.code == 1 and "it has no ottla.metrics.listener" in refused.err
        assert "hint: set ottla.metrics.listener on the nodes" in refused.err


def test_a_client_that_moved_to_another_broker_is_told_once() -> None:
    who = 'client_id="c",client_instance_id="i"'

    def told(address: str, seconds: float) -> MetricSamples:
        about = f'{CLIENT.name}{{{who},software="s",software_version="1",address="{address}"}} 1\n'
        return MetricSamples(f"{about}{LAST_PUSH.name}{{{who}}} {seconds}\n")

    (client,) = pushing_clients({1: told("10.0.0.1", 40.0), 2: told("10.0.0.2", 1.5), 3: told("10.0.0.3", 9.0)})
    assert (client.node, client.address, client.seconds) == (2, "10.0.0.2", 1.5)
