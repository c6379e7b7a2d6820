"""Kafka's own server.properties: a controller that is told of nobody but itself begins a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.ports import free_ports

from ottla.cluster.journal import Control, snapshot_items
from ottla.cluster.store import DIRECTORY
from ottla.log.files.checkpoint import read_meta_properties
from ottla.model.ids import uuid_text
from ottla.model.node_config import NodeConfig
from ottla.raft.voters import QuorumEndpoint, VoterSet, encode_kraft_version
from ottla.records.control import ControlType
from ottla.server.node import Node
from ottla.server.ports.os_disk import OsDisk
from ottla.server.ports.ports import system_ports
from ottla.server.quorum.settings import is_only_bootstrap
from ottla.server.storage.identity import IdentityError

# What Kafka 4.3's file says about it.
STOCK = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    ),
    "log.dirs": "/nowhere",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_FAR = {"advertised.listeners": "PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093"}
CHECKPOINT = f"{DIRECTORY}/{0:020d}-{0:010d}.checkpoint"


def on_ports(data: Path, node_id: int, broker: int, controller: int, bootstrap: int) -> dict[str, str]:
    """The stock file with other ports."""
    text = {name: value.replace("9092", str(broker)).replace("9093", str(controller)) for name, value in STOCK.items()}
    bootstrap_at = f"localhost:{bootstrap}"
    return text | {
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": bootstrap_at,
        "log.dirs": str(data),
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"process.roles": "controller", "listeners": "CONTROLLER://:9093"}, True),
        ({"controller.quorum.bootstrap.servers": "127.0.0.1:9093"}, True),
        ({"controller.quorum.bootstrap.servers": "LOCALHOST:9093,127.0.0.1:9093"}, True),
        ({"advertised.listeners": "CONTROLLER://h1:9093", "controller.quorum.bootstrap.servers": "h1:9093"}, True),
        ({"controller.quorum.bootstrap.servers": "localhost:9094"}, False),
        ({"controller.quorum.bootstrap.servers": "localhost:9092"}, False),
        ({"controller.quorum.bootstrap.servers": "localhost:9093,localhost:9094"}, False),
        ({"controller.quorum.bootstrap.servers": "h1:9093"}, False),
        ({"controller.quorum.voters": "1@localhost:9093"}, False),
        ({"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}, False),
        ({"listeners": "PLAINTEXT://:9092,CONTROLLER://10.0.0.1:9093"} | _FAR, False),
        ({"controller.quorum.bootstrap.servers": ""}, False),
    ],
)
def test_who_is_told_of_nobody_else(changes: dict[str, str], expected: bool) -> None:
    assert is_only_bootstrap(NodeConfig(STOCK | changes).broker) is expected


def test_it_begins_a_cluster_that_others_join(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ports = free_ports(4)
    first = on_ports(tmp_path / "1", 1, ports[0], ports[1], ports[1])
    second = on_ports(tmp_path / "2", 2, ports[2], ports[3], ports[1])

    async def live() -> None:
        node = Node(first, system_ports(first))
        await node.start()
        await node.stop()
        before = read_meta_properties(OsDisk(str(tmp_path / "1")))
        node = Node(first, system_ports(first))
        await node.start()
        try:
            assert read_meta_properties(OsDisk(str(tmp_path / "1"))) == before, "once is enough"
            other = Node(second, system_ports(second))
            await asyncio.wait_for(other.start(), 60)
            try:
                assert other.metadata.cluster_id == node.metadata.cluster_id
                assert other.member.quorum.leader_id == 1
                assert sorted(node.metadata.state.brokers) == [1, 2]
            finally:
                await other.stop()
        finally:
            await node.stop()

    asyncio.run(live())
    said = [record.getMessage() for record in caplog.records if "first controller of the new cluster" in record.message]
    assert len(said) == 1 and "node 1" in said[0]
    disk = OsDisk(str(tmp_path / "1"))
    properties = read_meta_properties(disk)
    assert properties is not None
    file = disk.open(CHECKPOINT)
    found = [item.content for item in snapshot_items(file.read(0, file.size), CHECKPOINT)]
    version, voters = [each for each in found if isinstance(each, Control)]
    assert version == Control(ControlType.KRAFT_VERSION, encode_kraft_version(1))
    (voter,) = VoterSet.decode(voters.value).values()
    assert voter.id == 1 and uuid_text(voter.directory) == properties["directory.id"]
    assert voter.endpoints == (QuorumEndpoint("CONTROLLER", "localhost", ports[1]),)
    assert not OsDisk(str(tmp_path / "2")).exists(CHECKPOINT), "the second is no first voter"


def test_no_cluster_is_begun_while_a_disk_is_missing(tmp_path: Path) -> None:
    ports = free_ports(2)
    (tmp_path / "file").write_text("")
    values = on_ports(tmp_path / "1", 1, ports[0], ports[1], ports[1])
    values["log.dirs"] += f",{tmp_path / 'file'}"
    with pytest.raises(IdentityError, match="no new cluster is begun"):
        asyncio.run(Node(values, system_ports(values)).start())
    assert read_meta_properties(OsDisk(str(tmp_path / "1"))) is None
