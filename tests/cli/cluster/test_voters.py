"""A dynamic quorum, as docs/cluster.md says: one controller begins, others join and vote, and go again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run, invoke, started
from tests.support.ports import free_ports
from tests.support.processes.clusters import ottla_node
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until

from ottla.model.ids import random_uuid, uuid_text

Ottla = Callable[..., Run]


class Nodes:
    """Three nodes with both roles, of which the first is formatted as the only voter."""

    def __init__(self, directory: Path) -> None:
        self.ports = dict(zip((1, 2, 3), free_ports(3), strict=True))
        self.controllers = dict(zip((1, 2, 3), free_ports(3), strict=True))
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        self.nodes: dict[int, OttlaNode] = {}
        cluster_id = uuid_text(random_uuid(random.Random()))
        for node_id, port in self.ports.items():
            place = directory / f"node-{node_id}"
            settings = {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{self.controllers[node_id]}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controllers[1]}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "log.dirs": str(place / "data"),
                # Soon enough for a test to see that a broker is still heard.
                "broker.session.timeout.ms": "2000",
                "broker.heartbeat.interval.ms": "300",
            }
            self.nodes[node_id] = ottla_node(place, settings, port)
            role = "--standalone" if node_id == 1 else "--no-initial-controllers"
            made = invoke("format", str(place / "server.properties"), "--cluster-id", cluster_id, role)
            assert made.code == 0, made.err


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    made = Nodes(tmp_path)
    try:
        for node in made.nodes.values():
            node.start()
        yield made
    finally:
        for node in made.nodes.values():
            node.kill()


@pytest.fixture
def ottla(nodes: Nodes) -> Ottla:
    def run(*arguments: str, code: int | None = 0) -> Run:
        done = invoke(*arguments, env={"OTTLA_BOOTSTRAP": nodes.bootstrap})
        assert code is None or done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
        return done

    return run


def roles(ottla: Ottla) -> dict[int, str]:
    return {each["node"]: each["role"] for each in ottla("cluster", "quorum", "--json").json}


def replicas(ottla: Ottla) -> dict[int, int]:
    return {each["id"]: each["replicas"] for each in ottla("cluster", "status", "--json", code=None).json["brokers"]}


def test_voters_come_and_go(nodes: Nodes, ottla: Ottla, tmp_path: Path) -> None:
    assert roles(ottla) == {1: "leader", 2: "observer", 3: "observer"}
    listen = f"127.0.0.1:{nodes.controllers[2]}"
    assert "2 voters are no safer than 1" in ottla("cluster", "add-voter", "2", "--listen", listen).err
    assert "node 3 votes" in ottla("cluster", "add-voter", "3").err
    assert "node 3 votes already" in ottla("cluster", "add-voter", "3", code=1).err
    assert "node 4 does not take part" in ottla("cluster", "add-voter", "4", code=1).err
    assert "node 4 does not take part" in ottla("cluster", "remove-voter", "4", code=1).err
    assert roles(ottla) == {1: "leader", 2: "voter", 3: "voter"}
    text = ottla("cluster", "add-broker", "--listen", "10.0.0.4:9092").out
    assert "controller.quorum.bootstrap.servers=" in text and "controller.quorum.voters" not in text

    ottla("cluster", "remove-voter", "1")  # the leader: another one takes over
    until(lambda: roles(ottla).get(1) == "observer")
    assert sorted(roles(ottla).values()) == ["leader", "observer", "voter"]

    ottla("topic", "create", "t", "--partitions", "3", "--replication-factor", "2")
    words = ["cluster", "remove-broker", "3", "--execute", "--data", str(tmp_path / "none"), "-b", nodes.bootstrap]
    with started(*words) as removing:
        until(lambda: removing.poll() is not None or (roles(ottla).get(3) == "observer" and replicas(ottla)[3] == 0))
        nodes.nodes[3].stop()
        _, err = removing.communicate(timeout=WAIT_S)
    assert removing.returncode == 0 and "broker 3 is forgotten" in err and "node 3 no longer votes" in err, err

    # One voter is left, and both brokers are still heard after more than a session. (One that was not heard for a
    # moment, because the machine is busy, is heard again.)
    time.sleep(3)

    def brokers() -> list[tuple[int, bool, int]]:
        found = ottla("cluster", "status", "--json", code=None).json["brokers"]
        return [(each["id"], each["fenced"], each["replicas"]) for each in found]

    until(brokers, lambda found: found == [(1, False, 3), (2, False, 3)])
    assert ottla("cluster", "status", "--json", code=None).json["controller"] == 2
