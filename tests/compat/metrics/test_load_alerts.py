"""Two alerts that need more than a fault of one cluster: nodes of two clusters in one job, and a flood of requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest
from scripts.monitoring.rules import rules
from tests.compat.metrics.watching import PACE, MeteredCluster, watched
from tests.server.metrics.scraping import ON
from tests.support import tools
from tests.support.processes.prometheus import Prometheus
from tests.support.waiting import until

from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.topics.metadata import MetadataRequest

METADATA_VERSION = 12
FLOODS = 3  # connections
FRAMES = 200  # sent at once


def firing(prometheus: Prometheus) -> set[str]:
    return {alert["labels"]["alertname"] for alert in prometheus.alerts()}


def address_of(broker: EmbeddedBroker) -> str:
    assert broker.node is not None and broker.node.metrics_address is not None
    host, port = broker.node.metrics_address
    return f"{host}:{port}"


def test_nodes_of_two_clusters_in_one_job(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())
    name = "OttlaTwoActiveControllers"
    path = tmp_path / "alerts.yml"
    path.write_text(rules(PACE))
    with ExitStack() as stack:
        kept = stack.enter_context(EmbeddedBroker(tmp_path / "kept", ON))
        other = stack.enter_context(EmbeddedBroker(tmp_path / "other", ON))
        targets = [address_of(kept), address_of(other)]
        prometheus = stack.enter_context(Prometheus(tmp_path / "prometheus", targets, rules=[path]))
        prometheus.until_scraped()
        until(lambda: name in firing(prometheus), bool)
        told = next(each for each in prometheus.alerts() if each["labels"]["alertname"] == name)
        assert told["annotations"]["summary"] == "2 controllers say that they are active"
        clusters = {each["cluster"] for each in prometheus.series("ottla_build_info")}
        assert len(clusters) == 2, "what the alert says to compare tells them apart"
        other.stop()
        until(lambda: name not in firing(prometheus), bool)


@contextmanager
def flooded(port: int) -> Iterator[None]:
    """Clients send requests without an end, and throw the answers away."""
    enough = Event()
    frame = request_frame(MetadataRequest(topics=None), METADATA_VERSION, 1, "flood") * FRAMES
    with ExitStack() as stack:
        threads = []
        for _ in range(FLOODS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))

            def send(connection: socket.socket = connection) -> None:
                with suppress(OSError):
                    while not enough.is_set():
                        connection.sendall(frame)

            def receive(connection: socket.socket = connection) -> None:
                with suppress(OSError):
                    while connection.recv(1 << 20):
                        pass

            threads += [Thread(target=send), Thread(target=receive)]
            stack.callback(connection.shutdown, socket.SHUT_RDWR)
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            enough.set()
            stack.close()
            for thread in threads:
                thread.join()


@pytest.mark.slow
def test_a_node_that_is_flooded(tmp_path: Path) -> None:
    tools.require(tools.missing_prometheus())
    cluster = MeteredCluster(tmp_path / "cluster")
    with watched(tmp_path, cluster) as watching:
        watching.create("wide", num_partitions=50, replication_factor=1)
        with flooded(cluster.ports[cluster.ids[0]]):
            watching.until_fire({"OttlaEventLoopSaturated"})
            alert = next(
                each
                for each in watching.prometheus.alerts()
                if each["labels"]["alertname"] == "OttlaEventLoopSaturated"
            )
            assert alert["labels"]["instance"] == cluster.metrics[0]
        watching.until_clear({"OttlaEventLoopSaturated"})
