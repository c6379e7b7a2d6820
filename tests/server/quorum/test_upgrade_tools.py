"""Three controllers that were configured become a quorum that can change, by Kafka's own tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.quorum.test_kafka_tools import DUMP, FEATURES, QUORUM, line, tool, until
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.clusters import OttlaCluster, ottla_node

pytestmark = [pytest.mark.compat, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[OttlaCluster]:
    made = OttlaCluster(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def voters(java: JavaServer, cluster: OttlaCluster) -> str:
    found = tool(java, QUORUM, "--bootstrap-server", cluster.bootstrap, "describe", "--status")
    return line(found, "CurrentVoters")


def directory_id(data: Path) -> str:
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(each.split("=", 1) for each in lines if "=" in each)["directory.id"]


def test_fixed_voters_are_upgraded_and_another_is_added(cluster: OttlaCluster, java_commands: JavaServer) -> None:
    bootstrap = ("--bootstrap-server", cluster.bootstrap)
    assert directory_id(cluster.data_directory(1)) not in voters(java_commands, cluster)

    def upgraded() -> bool:  # every voter tells the leader about itself within a second
        words = [*bootstrap, "upgrade", "--feature", "kraft.version=1"]
        answer = java_commands.ask({"main": FEATURES, "args": words})
        assert answer["code"] == 0 or "because not all of the voters support it" in str(answer), answer
        return bool(answer["code"] == 0)

    until(upgraded)
    found = voters(java_commands, cluster)
    assert all(directory_id(cluster.data_directory(id)) in found for id in cluster.ids)
    described = tool(java_commands, FEATURES, *bootstrap, "describe")
    assert "FinalizedVersionLevel: 1" in next(each for each in described.splitlines() if "kraft.version" in each)
    tool(java_commands, FEATURES, *bootstrap, "upgrade", "--release-version", "4.3")

    # One that is started again goes by its log, whatever its file says; a fourth controller joins.
    cluster.kill(2)
    cluster.start_node(2)
    broker, controller = (f"127.0.0.1:{port}" for port in free_ports(2))
    directory = cluster.directory / "node-4"
    settings = cluster.properties | {
        "process.roles": "broker,controller",
        "node.id": "4",
        "controller.quorum.bootstrap.servers": cluster.controllers,
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "log.dirs": str(directory / "data"),
    }
    fourth = ottla_node(directory, settings, int(broker.rpartition(":")[2]))
    try:
        fourth.start()
        words = ["--command-config", str(directory / "server.properties"), "add-controller"]
        tool(java_commands, QUORUM, "--bootstrap-controller", cluster.controllers, *words)
        assert directory_id(directory / "data") in voters(java_commands, cluster)
    finally:
        fourth.kill()
    files = ",".join(map(str, sorted((cluster.data_directory(1) / "__cluster_metadata-0").glob("*.log"))))
    text = tool(java_commands, DUMP, "--cluster-metadata-decoder", "--files", files)
    assert "KRaftVersion" in text and "KRaftVoters" in text and "isvalid: false" not in text
