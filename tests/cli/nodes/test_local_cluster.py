"""The files of a local cluster: what `ottla up` and `ottla cluster add-broker` write, and refuse to."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.support.ports import free_ports

from ottla.cli.cluster.brokers import add_local
from ottla.cli.nodes import start
from ottla.cli.nodes.intact import check_files
from ottla.cli.nodes.local_cluster import define, define_broker, found_nodes, retire
from ottla.cli.nodes.up_cluster import UpCluster
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError
from ottla.server.ports.system import lock_directory

CONTROLLERS_AT = "controller.quorum.bootstrap.servers"


def test_a_cluster_of_three(tmp_path: Path) -> None:
    nodes = define(tmp_path, 3, None, ("127.0.0.1", 0), ["num.partitions=7"])
    assert [each.node_id for each in nodes] == [1, 2, 3] and all(each.is_broker for each in nodes)
    controllers = ",".join(each.controller_address for each in nodes)
    assert {each.values["controller.quorum.bootstrap.servers"] for each in nodes} == {controllers}
    values = start.node_values(start.parse([str(nodes[1].path)]))
    assert values["node.id"] == "2" and values["log.dirs"] == str(tmp_path / "node-2")
    assert values["default.replication.factor"] == "3" and values["num.partitions"] == "7"
    assert values["listeners"].startswith(f"PLAINTEXT://{nodes[1].address},CONTROLLER://127.0.0.1:")
    assert len({each.address for each in nodes}) == 3


def test_more_brokers_than_voters(tmp_path: Path) -> None:
    nodes = define(tmp_path, 5, None, ("127.0.0.1", 0))
    assert [each.values["process.roles"] for each in nodes] == ["broker,controller"] * 5
    # Three of them vote; the others may, one day.
    first = [(tmp_path / each.name / "__cluster_metadata-0").exists() for each in nodes]
    assert first == [True, True, True, False, False]


def test_controllers_of_their_own(tmp_path: Path) -> None:
    nodes = define(tmp_path, 2, 3, ("127.0.0.1", 0))
    assert [(each.node_id, each.values["process.roles"]) for each in nodes] == [
        (1, "broker"),
        (2, "broker"),
        (101, "controller"),
        (102, "controller"),
        (103, "controller"),
    ]
    assert nodes[4].address == "" and "advertised.listeners" not in nodes[4].values
    # Two brokers cannot keep anything three times.
    assert "default.replication.factor" not in nodes[0].values


def test_ports_count_up_and_step_over_taken_ones(tmp_path: Path) -> None:
    (first,) = free_ports(1)
    nodes = define(tmp_path, 3, None, ("127.0.0.1", first))
    ports = [int(each.address.rpartition(":")[2]) for each in nodes]
    assert ports == sorted(ports) and ports[0] >= first


def test_up_says_where_an_existing_cluster_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(listen: str) -> str:
        UpCluster(tmp_path, None, None, host_and_port(listen), [], "here", None).check_listen(listen)
        return capsys.readouterr().err

    (port,) = free_ports(1)
    assert told(f"127.0.0.1:{port}") == "", "this one is new"
    (node,) = found_nodes(tmp_path)
    assert told(node.address) == told("127.0.0.1:0") == ""
    for listen in ("127.0.0.1:1", "0.0.0.0:0", f"127.0.0.2:{port}"):
        expected = f"--listen {listen} has no effect: the brokers in {tmp_path} listen at {node.address}, as their"
        assert told(listen).startswith(f"warning: {expected}")


def up(directory: Path, *words: str) -> str:
    """What an `ottla up` says that does not start."""
    done = invoke("up", "--data", str(directory), "--registry", "off", *words)
    assert done.code == 1, done.err
    return done.err


def test_a_property_file_that_was_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    define(tmp_path, 3, None, ("127.0.0.1", 0))
    (tmp_path / "node-2.properties").unlink()
    check_files(tmp_path)
    told = capsys.readouterr().err
    assert told.startswith("warning: node-2.properties is missing: node-2 is not started") and "intact" in told
    for node in found_nodes(tmp_path):
        node.path.unlink()
    for words in ((), ("--secure",), ("--brokers", "3")):
        told = up(tmp_path, *words)
        assert f"node-1.properties is missing from {tmp_path}; the data in {tmp_path}/node-1 is intact" in told
        assert "delete" not in told and "put the file back from a backup" in told


def test_data_that_was_lost_makes_no_new_cluster(tmp_path: Path) -> None:
    (node,) = define(tmp_path, 1, None, ("127.0.0.1", 0))
    (tmp_path / node.name).rename(tmp_path.parent / "kept")
    assert f"the data of node-1 is gone: {tmp_path}/node-1 has no meta.properties" in up(tmp_path)
    assert not (tmp_path / node.name).exists()
    (tmp_path.parent / "kept").rename(tmp_path / node.name)
    UpCluster(tmp_path, None, None, ("127.0.0.1", 0), [], "here", None)


def test_a_cluster_that_is_running_already(tmp_path: Path) -> None:
    (node,) = define(tmp_path, 1, None, ("127.0.0.1", 0))
    unlock = lock_directory(str(tmp_path / node.name))
    try:
        told = up(tmp_path, "--listen", "127.0.0.1:1")
    finally:
        unlock()
    assert f"{tmp_path} is already running: node-1 uses its data" in told and node.address in told
    assert "--listen" not in told


@pytest.mark.parametrize("secure", [[], ["--secure"]])
def test_one_node_takes_no_other_port_than_the_one_that_was_asked_for(tmp_path: Path, secure: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"cannot listen on {at}" in up(tmp_path / "data", "--listen", at, *secure)
    assert not found_nodes(tmp_path / "data")


def test_one_more_broker_and_one_less(tmp_path: Path) -> None:
    define(tmp_path, 3, None, ("127.0.0.1", 0), ["num.partitions=7"])
    edited = found_nodes(tmp_path)[0].path
    edited.write_text(edited.read_text() + "# mine\nlog.retention.hours=1\n")
    node = define_broker(tmp_path, rack="r")
    assert node.node_id == 4 and node.values["process.roles"] == "broker,controller"
    assert node.values["broker.rack"] == "r" and node.values["num.partitions"] == "7"
    assert "broker.rack" not in found_nodes(tmp_path)[0].values
    with pytest.raises(CommandError, match="a node 4 already"):
        define_broker(tmp_path, node_id=4)
    with pytest.raises(CommandError, match="a node 9 already"):
        define_broker(tmp_path, node_id=9, taken={9})  # on another machine: it has no file here
    # Everybody is told where controllers are; the rest of a file is its owner's.
    assert all(node.controller_address in each.values[CONTROLLERS_AT] for each in found_nodes(tmp_path))
    assert retire(found_nodes(tmp_path)[1]).name == "node-2.removed"
    left = found_nodes(tmp_path)
    assert [each.node_id for each in left] == [1, 3, 4]
    assert {each.values[CONTROLLERS_AT] for each in left} == {",".join(each.controller_address for each in left)}
    assert edited.read_text().endswith("# mine\nlog.retention.hours=1\n")
    with pytest.raises(CommandError, match="the data of a former node 2"):
        define_broker(tmp_path, node_id=2)
    with pytest.raises(CommandError, match="holds no local cluster"):
        define_broker(tmp_path / "elsewhere")


def test_who_was_here_once_is_nobody_new(tmp_path: Path) -> None:
    nodes = define(tmp_path, 3, None, ("127.0.0.1", 0))
    retire(nodes[2])
    assert define_broker(tmp_path).node_id == 4
    for node in found_nodes(tmp_path):
        retire(node)
    with pytest.raises(CommandError, match="node-1 holds the data of a former node 1"):
        define(tmp_path, 3, None, ("127.0.0.1", 0))


def test_brokers_of_controllers_of_their_own(tmp_path: Path) -> None:
    define(tmp_path, 3, 1, ("127.0.0.1", 0))
    node = define_broker(tmp_path)
    assert node.node_id == 4 and node.values["process.roles"] == "broker" and not node.controller_address
    with pytest.raises(CommandError, match="none of them can vote"):
        add_local(tmp_path, None, None, voter=True)
    assert len(found_nodes(tmp_path)) == 5


def test_what_up_refuses(tmp_path: Path) -> None:
    define(tmp_path / "three", 3, None, ("127.0.0.1", 0))
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "meta.properties").write_text("version=1\n")
    for arguments, message in [
        (("--data", str(tmp_path / "three"), "--brokers", "5"), "holds a cluster of 3 brokers, not 5"),
        (("--data", str(tmp_path / "three"), "--controllers", "3"), "with 0 controllers of their own, not 3"),
        (("--data", str(tmp_path / "one"), "--brokers", "3"), "holds the data of a single node"),
    ]:
        done = invoke("up", *arguments, "--registry", "off")
        assert done.code == 1 and message in done.err, done.err
