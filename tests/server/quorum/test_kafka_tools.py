"""A quorum that changes while it runs, by Kafka's own tools; and its log and snapshots, read by them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla.cluster.journal import snapshot_items
from ottla.cluster.store import DIRECTORY
from ottla.model.ids import uuid_text
from ottla.raft.voters import VoterSet
from ottla.server.ports.os_disk import OsDisk
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest

pytestmark = [pytest.mark.compat, pytest.mark.slow]

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
STORAGE = "kafka.tools.StorageTool"
CHECKPOINT = f"{DIRECTORY}/{0:020d}-{0:010d}.checkpoint"
DUMP = "org.apache.kafka.tools.DumpLogSegments"


class Nodes:
    """Nodes of a quorum whose voters are in its journal; the first was formatted, the others just start."""

    def __init__(self, directory: Path, size: int) -> None:
        ports = free_ports(2 * size)
        self.brokers = dict(zip(range(1, size + 1), ports[:size], strict=True))
        self.controllers = dict(zip(range(1, size + 1), ports[size:], strict=True))
        self.directory = directory
        self.nodes: dict[int, OttlaNode] = {}

    def path(self, id: int) -> Path:
        return self.directory / f"node-{id}" / "server.properties"

    def data(self, id: int) -> Path:
        return self.path(id).with_name("data")

    def make(self, id: int, **more: str) -> OttlaNode:
        broker, controller = f"127.0.0.1:{self.brokers[id]}", f"127.0.0.1:{self.controllers[id]}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(id),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controllers[1]}",
            "log.dirs": str(self.data(id)),
            "metadata.log.max.record.bytes.between.snapshots": "3000",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        self.path(id).parent.mkdir(parents=True)
        self.path(id).write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.nodes[id] = OttlaNode.on_file(self.path(id), self.data(id), self.brokers[id])
        return self.nodes[id]

    def directory_id(self, id: int) -> str:
        lines = (self.data(id) / "meta.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)["directory.id"]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path_factory.mktemp("quorum"), 4)
    try:
        first = nodes.make(1)
        format_ = [sys.executable, "-m", "ottla", "format", str(nodes.path(1)), "-t", CLUSTER_ID, "--standalone"]
        subprocess.run(format_, check=True, capture_output=True)
        first.start()
        nodes.make(2).start()
        nodes.make(3, controller_quorum_auto_join_enable="true").start()
        yield nodes
    finally:
        for node in nodes.nodes.values():
            node.kill()


def tool(java: JavaServer, main: str, *args: str) -> str:
    answer = java.ask({"main": main, "args": list(args)})
    assert answer["code"] == 0, answer
    return str(answer["out"])


def status(java: JavaServer, nodes: Nodes, id: int) -> str:
    return tool(java, QUORUM, "--bootstrap-controller", f"127.0.0.1:{nodes.controllers[id]}", "describe", "--status")


def leader(nodes: Nodes, id: int) -> int:
    """As a node knows it. Kafka's tools, once told of a leader that is just gone, wait for it for a minute."""
    with RawConnection(f"127.0.0.1:{nodes.controllers[id]}") as connection:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
        answer: Any = connection.call(request, 1)
        return int(answer.controller_id)


def until(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)
    return found


def line(text: str, name: str) -> str:
    return next(each.partition(":")[2].strip() for each in text.splitlines() if each.startswith(name))


def test_a_controller_joins_by_itself_and_one_is_added(quorum: Nodes, java_commands: JavaServer) -> None:
    until(lambda: '"id": 3' in line(status(java_commands, quorum, 1), "CurrentVoters"))
    bootstrap = ("--bootstrap-controller", f"127.0.0.1:{quorum.controllers[1]}")
    added = tool(java_commands, QUORUM, *bootstrap, "--command-config", str(quorum.path(2)), "add-controller")
    assert quorum.directory_id(2) in added
    found = status(java_commands, quorum, 1)
    assert line(found, "ClusterId") == CLUSTER_ID and line(found, "LeaderId") == "1"
    assert all(quorum.directory_id(id) in line(found, "CurrentVoters") for id in (1, 2, 3))
    features = tool(java_commands, FEATURES, "--bootstrap-server", f"127.0.0.1:{quorum.brokers[2]}", "describe")
    kraft = next(each for each in features.splitlines() if "kraft.version" in each)
    assert "FinalizedVersionLevel: 1" in kraft


def test_a_killed_leader_is_replaced_and_comes_back_as_a_follower(quorum: Nodes, java_commands: JavaServer) -> None:
    quorum.nodes[1].kill()
    until(lambda: leader(quorum, 2) in (2, 3))
    for number in range(3):
        tool(
            java_commands, TOPICS, "--bootstrap-server", f"127.0.0.1:{quorum.brokers[2]}",
            "--create", "--topic", f"t{number}", "--partitions", "20",
        )  # fmt: skip
    quorum.nodes[1].start()
    found = until(lambda: (text := status(java_commands, quorum, 1)) and line(text, "MaxFollowerLag") == "0" and text)
    assert line(found, "LeaderId") in ("2", "3")  # on a busy machine the one may have followed the other


def test_a_fresh_node_begins_with_a_snapshot(quorum: Nodes, java_commands: JavaServer) -> None:
    until(lambda: len(snapshots(quorum, 2)) > 1 and len(snapshots(quorum, 3)) > 1)
    quorum.make(4).start()
    assert '"id": 4' in line(status(java_commands, quorum, 2), "CurrentObservers")
    assert snapshots(quorum, 4) and not (quorum.data(4) / "__cluster_metadata-0" / f"{0:020d}.log").exists()


def snapshots(nodes: Nodes, id: int) -> list[Path]:
    return sorted((nodes.data(id) / "__cluster_metadata-0").glob("*.checkpoint"))


def test_kafka_reads_the_log_and_the_snapshots(quorum: Nodes, java_commands: JavaServer) -> None:
    text = ""
    for id in (1, 3):
        directory = quorum.data(id) / "__cluster_metadata-0"
        files = ",".join(str(file) for file in [*sorted(directory.glob("*.log")), *snapshots(quorum, id)])
        text += tool(java_commands, DUMP, "--cluster-metadata-decoder", "--files", files)
    assert "isvalid: false" not in text and "ERROR" not in text
    assert "KRaftVoters" in text and "KRaftVersion" in text and "SnapshotFooter" in text


def test_a_controller_is_removed(quorum: Nodes, java_commands: JavaServer) -> None:
    tool(
        java_commands, QUORUM, "--bootstrap-server", f"127.0.0.1:{quorum.brokers[1]}",
        "remove-controller", "--controller-id", "1", "--controller-directory-id", quorum.directory_id(1),
    )  # fmt: skip
    until(lambda: leader(quorum, 2) in (2, 3))
    found = status(java_commands, quorum, 2)
    assert '"id": 1' not in line(found, "CurrentVoters")
    until(lambda: '"id": 1' in line(status(java_commands, quorum, 2), "CurrentObservers"))


def test_a_first_controller_formats_itself_as_kafkas_tool_does(java_commands: JavaServer, tmp_path: Path) -> None:
    """Kafka's own server.properties names nobody but the node itself."""
    found = []
    for maker in ("kafka", "ottla"):
        nodes = Nodes(tmp_path / maker, 1)
        node = nodes.make(1)
        if maker == "kafka":
            tool(java_commands, STORAGE, "format", "-t", CLUSTER_ID, "-c", str(nodes.path(1)), "--standalone")
        else:
            node.start()
            node.kill()
        disk = OsDisk(str(nodes.data(1)))
        quorum_, features = (_decoded(disk, name) for name in (CHECKPOINT, "bootstrap.checkpoint"))
        voters = VoterSet.decode(quorum_[1].value)
        assert uuid_text(voters[1].directory) == nodes.directory_id(1)
        assert [end.port for end in voters[1].endpoints] == [nodes.controllers[1]]
        shape = [each._replace(port=0) for each in voters[1].endpoints]
        found.append((quorum_[0], list(voters), shape, sorted(map(str, features)), sorted(_meta(nodes.data(1)))))
    assert found[0] == found[1]


def _decoded(disk: OsDisk, name: str) -> list[Any]:
    """The contents of a snapshot, without the marks of its beginning and end."""
    items = snapshot_items(disk.open(name).read(0, disk.open(name).size), name)
    return [item.content for item in items]


def _meta(data: Path) -> dict[str, str]:
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
