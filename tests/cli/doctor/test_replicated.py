"""`ottla doctor` on clusters of several nodes: what happens to replicas, brokers and controllers is done to them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.cli.doctor.diagnoses import Told
from tests.support.processes.clusters import Member, MixedCluster, OttlaCluster, running
from tests.support.waiting import until

from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker

OF_SEVERAL_NODES = {
    "broker-fenced",
    "controller-missing",
    "directory-offline",
    "disk-skew",
    "internal-replica-single",
    "leaders-unbalanced",
    "min-isr-one",
    "move-stuck",
    "partition-offline",
    "replica-none-to-spare",
    "replica-single",
    "replicas-one-rack",
    "settings-differ",
    "unclean-election",
    "under-replicated",
    "voter-behind",
    "voter-single",
    "voters-even",
    "versions-mixed",
}
MIB = 1 << 20
QUICK = {"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "3000"}
ONE_REPLICA = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
Examine = Callable[..., Told]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaCluster]:
    """Three nodes; the tests of this module run in order, and the last ones kill nodes."""
    made = OttlaCluster(tmp_path_factory.mktemp("cluster"), properties=QUICK, racks={1: "a", 2: "b", 3: "b"})
    with running(made):
        yield made


@pytest.fixture
def client(cluster: OttlaCluster) -> Iterator[Blocking]:
    with Blocking(cluster.bootstrap) as client:
        yield client


@pytest.fixture
def examine(cluster: OttlaCluster) -> Examine:
    return lambda *words: told(cluster.bootstrap, *words)


def told(bootstrap: str, *words: str) -> Told:
    return Told("-b", bootstrap, "--sample", "0s", "--skip", "broker-disk-full", *words)


def make(client: Blocking, name: str, replicas: Sequence[int], configs: Mapping[str, str] | None = None) -> None:
    client.admin.topics.create_each([NewTopic(name, assignments={0: replicas}, configs=configs or {})]).all()


def test_nothing_is_wrong_with_a_cluster_in_use(cluster: OttlaCluster, client: Blocking, examine: Examine) -> None:
    client.admin.topics.create("t", 6, 3)
    client.send_all("t", [(b"k", b"v")] * 100)
    env = {"OTTLA_BOOTSTRAP": cluster.bootstrap}
    assert invoke("consume", "t", "-g", "readers", "-n", "100", "--from-beginning", env=env).code == 0
    found = until(examine, lambda found: not found.findings)
    assert set(found.not_checked) == {"registry-unreachable"} and found.fine >= OF_SEVERAL_NODES


@pytest.mark.parametrize(
    ("check", "name", "replicas", "configs", "level"),
    [
        ("replica-single", "alone", [1], {"min.insync.replicas": "1"}, "warning"),
        (
            "internal-replica-single",
            "_schemas",
            [1],
            {"cleanup.policy": "compact", "min.insync.replicas": "1"},
            "problem",
        ),
        ("replica-none-to-spare", "tight", [1, 2], {"min.insync.replicas": "2"}, "warning"),
        ("min-isr-one", "loose", [1, 2, 3], {"min.insync.replicas": "1"}, "warning"),
        ("unclean-election", "risky", [1, 2, 3], {"unclean.leader.election.enable": "true"}, "warning"),
        ("replicas-one-rack", "close", [2, 3], {"min.insync.replicas": "1"}, "warning"),
    ],
)
def test_a_topic_at_risk(
    client: Blocking, examine: Examine, check: str, name: str, replicas: list[int], configs: dict[str, str], level: str
) -> None:
    make(client, name, replicas, configs)
    found = until(examine, lambda found: found.level(check) is not None)
    assert found.level(check) == level and name in found.what(check)
    client.admin.topics.delete(name)
    until(examine, lambda found: found.level(check) is None)


def test_brokers_that_differ(cluster: OttlaCluster, examine: Examine) -> None:
    env = {"OTTLA_BOOTSTRAP": cluster.bootstrap}
    assert invoke("config", "set", "broker", "2", "log.retention.ms=1000", env=env).code == 0
    found = until(examine, lambda found: found.level("settings-differ") is not None)
    assert "1000 on 2" in found.what("settings-differ")
    assert invoke("config", "set", "broker", "2", "--unset", "log.retention.ms", env=env).code == 0
    until(examine, lambda found: found.level("settings-differ") is None)


def test_leaders_elsewhere(cluster: OttlaCluster, client: Blocking, examine: Examine) -> None:
    make(client, "led", [1, 2, 3])
    client.admin.topics.create("also", 1, 3)
    client.admin.topics.delete("t")
    env = {"OTTLA_BOOTSTRAP": cluster.bootstrap}
    client.admin.replicas.reassign({TopicPartition("led", 0): [2, 1, 3]})
    indexes = [each.index for each in client.admin.topics.describe("__consumer_offsets").partitions]
    moved = {TopicPartition("__consumer_offsets", index): [1, 2, 3] for index in indexes}
    client.admin.replicas.reassign(moved)
    found = until(examine, lambda found: found.level("leaders-unbalanced") is not None)
    assert "partitions" in found.what("leaders-unbalanced")
    assert invoke("cluster", "elect", env=env).code == 0
    until(examine, lambda found: found.level("leaders-unbalanced") is None)


def test_data_on_one_broker_only(client: Blocking, examine: Examine) -> None:
    make(client, "heavy", [1], {"min.insync.replicas": "1"})
    assert examine().level("disk-skew") is None
    for _ in range(10):
        client.send_all("heavy", [(None, bytes(MIB // 2))] * 14)
    found = until(examine, lambda found: found.level("disk-skew") is not None)
    assert "broker 1 holds 7" in found.what("disk-skew")


def test_a_move_that_does_not_move(cluster: OttlaCluster, client: Blocking, examine: Examine) -> None:
    """At one byte a second, the 70 MiB of the test before take longer than any test."""
    env = {"OTTLA_BOOTSTRAP": cluster.bootstrap}
    rates = ("leader.replication.throttled.rate=1", "follower.replication.throttled.rate=1")
    lists = ("leader.replication.throttled.replicas=*", "follower.replication.throttled.replicas=*")
    for node_id in ("1", "2", "3"):
        assert invoke("config", "set", "broker", node_id, *rates, env=env).code == 0
    assert invoke("config", "set", "topic", "heavy", *lists, env=env).code == 0
    where = TopicPartition("heavy", 0)
    client.admin.replicas.reassign({where: [3]})
    found = until(examine, lambda found: found.level("move-stuck") is not None)
    assert found.level("move-stuck") == "warning" and "heavy-0 moves to broker 3" in found.what("move-stuck")
    assert "may belong to that" in found.not_checked["throttle-left"]
    client.admin.replicas.cancel([where])
    found = until(examine, lambda found: found.level("move-stuck") is None)
    assert found.level("throttle-left") == "warning"
    for node_id in ("1", "2", "3"):
        names = (each.partition("=")[0] for each in rates)
        unset = [word for name in names for word in ("--unset", name)]
        assert invoke("config", "set", "broker", node_id, *unset, env=env).code == 0


def test_a_broker_that_is_killed(cluster: OttlaCluster, client: Blocking, examine: Examine) -> None:
    make(client, "lost", [3], {"min.insync.replicas": "1"})
    make(client, "whole", [1, 2, 3], {"min.insync.replicas": "3"})
    cluster.kill(3)
    wanted = {"broker-fenced", "voter-behind", "partition-offline", "under-replicated", "under-min-isr"}
    found = until(examine, lambda found: wanted <= found.checks)
    assert {each: found.level(each) for each in wanted} == dict.fromkeys(wanted, "problem") | {
        "under-replicated": "warning"
    }
    assert "broker 3" in found.what("broker-fenced") and "voter 3" in found.what("voter-behind")
    assert "lost-0" in found.what("partition-offline") and found.do("broker-fenced").startswith("start it")
    where = TopicPartition("heavy", 0)
    client.admin.replicas.reassign({where: [3]})
    found = until(examine, lambda found: found.level("move-stuck") is not None)
    assert found.level("move-stuck") == "problem" and "broker 3, which is away" in found.what("move-stuck")


def test_no_majority_of_controllers(cluster: OttlaCluster, examine: Examine) -> None:
    cluster.kill(2)
    found = until(examine, lambda found: "controller-missing" in found.checks)
    assert found.level("controller-missing") == "problem"


def test_two_voters(tmp_path: Path) -> None:
    two = {each: "2" for each in ONE_REPLICA if each.endswith("factor")} | {"min.insync.replicas": "1"}
    with running(OttlaCluster(tmp_path, size=2, properties=two)) as cluster:
        found = told(cluster.bootstrap)
        assert found.level("voters-even") == "warning" and "there are 2 voters" in found.what("voters-even")
        assert found.level("voter-single") is None


def test_one_controller_for_two_brokers(tmp_path: Path) -> None:
    members = [Member("ottla", "broker,controller"), Member("ottla", "broker")]
    with running(MixedCluster(tmp_path, members, properties=ONE_REPLICA)) as cluster:
        found = told(cluster.bootstrap)
        assert found.level("voter-single") == "warning" and "node 1 is the only voter" in found.what("voter-single")
        assert found.level("voters-even") is None and found.level("versions-mixed") is None


@pytest.mark.compat
@pytest.mark.usefixtures("java_tools")
def test_nodes_of_two_kinds(tmp_path: Path) -> None:
    members = [Member("ottla", "broker,controller"), Member("kafka", "broker")]
    with running(MixedCluster(tmp_path, members, properties=ONE_REPLICA)) as cluster:
        found = told(cluster.bootstrap)
    assert found.level("versions-mixed") == "warning" and "brokers 1, 2" in found.what("versions-mixed")


def test_a_directory_that_fails(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    settings = {"log.dirs": f"{good},{bad}"}
    with EmbeddedBroker(good, settings) as broker, Blocking(broker.bootstrap) as client:
        client.admin.topics.create("t", 4)
        client.send_all("t", [(None, b"v")] * 40)
        assert told(broker.bootstrap).level("directory-offline") is None
        shutil.rmtree(bad)
        bad.write_text("no directory any more")
        client.admin.topics.create("u", 4)
        found = until(lambda: told(broker.bootstrap), lambda found: found.level("directory-offline"))
        assert f"{bad} of broker 1: KAFKA_STORAGE_ERROR" in found.what("directory-offline")
    with EmbeddedBroker(good, settings) as broker:
        found = told(broker.bootstrap)
    assert found.level("directory-offline") == "problem" and "could not be used" in found.what("directory-offline")
