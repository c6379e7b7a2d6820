"""`ottla doctor` on a running node: each check is provoked for real, and a healthy node in use provokes none.

What takes several nodes is in `test_replicated.py`.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import invoke
from tests.cli.doctor.diagnoses import Told
from tests.cli.doctor.test_replicated import OF_SEVERAL_NODES
from tests.server.talk import produce
from tests.support.ports import free_ports
from tests.support.requests.classic import Crowd
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.share.options import ShareOptions
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource, ResourceType
from ottla.operations.doctor.catalogue import CLUSTER, REACH, SETTINGS
from ottla.operations.doctor.cluster.reach import UNREACHABLE
from ottla.records.build import build_batch
from ottla.testing.broker import EmbeddedBroker

OF_ONE_NODE = {
    "broker-unreachable",
    "broker-disk-full",
    "clock-off",
    "contract-refuses-all",
    "dead-letters",
    "features-behind",
    "group-abandoned",
    "group-rebalancing",
    "lag-growing",
    "lag-near-retention",
    "lag-old",
    "partitions-many",
    "record-times-future",
    "registry-unreachable",
    "schemas-not-compact",
    "segments-short",
    "stable-offset-held",
    "throttle-left",
    "transaction-hanging",
    "under-min-isr",
}
HOUR_MS = 3_600_000
FEW = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("node") / "data", FEW) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as client:
        yield client


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def side(broker: EmbeddedBroker) -> Iterator[Side]:
    side = Side("ottla", broker.bootstrap)
    yield side
    side.close()


def told(broker: EmbeddedBroker, *words: str, sample: str = "0s") -> Told:
    skipped = ("--skip", "broker-disk-full")  # of this machine
    assert broker.node is not None
    host, port = broker.node.addresses[0]  # where it listens, whatever it advertises
    return Told("-b", f"{host}:{port}", "--sample", sample, *skipped, *words)


def write(connection: RawConnection, topic: str, count: int, time_ms: int | None = None) -> None:
    stamp = round(time.time() * 1000) if time_ms is None else time_ms
    assert produce(connection, topic, build_batch([(None, b"v")] * count, timestamp=stamp))[0] == 0


def test_every_check_of_a_cluster_is_provoked_somewhere() -> None:
    assert {each.id for each in CLUSTER.all} == OF_SEVERAL_NODES | OF_ONE_NODE
    assert {each.id for each in REACH.all} == {UNREACHABLE}


def test_a_cluster_that_does_not_answer_is_a_finding_for_scripts(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    found = Told("-b", nobody)
    assert found.level(UNREACHABLE) == "problem" and nobody in found.what(UNREACHABLE)
    assert "--bootstrap" in found.do(UNREACHABLE)
    assert found.not_checked.keys() == {each.id for each in CLUSTER.all} and not found.fine
    told_to_people = invoke("doctor", "-b", nobody)
    assert told_to_people.code == 1 and told_to_people.out == "" and nobody in told_to_people.err
    skipping = invoke("doctor", "-b", nobody, "--json", "--skip", UNREACHABLE)
    assert skipping.code == 1 and nobody in skipping.err, "it is never all fine"
    file = tmp_path / "server.properties"
    file.write_text("process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092\nfoo=1\n")
    both = invoke("doctor", "-b", nobody, "--config", str(file))
    assert both.code == 1 and UNREACHABLE in both.out and "setting-unknown" in both.out


def test_nothing_is_wrong_with_a_node_in_use(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", FEW) as broker, Blocking(broker.bootstrap) as client:
        env = {"OTTLA_BOOTSTRAP": broker.bootstrap}
        assert invoke("topic", "create", "t", "-p", "3", env=env).code == 0
        client.admin.topics.create("u")
        client.send_all("t", [(b"k", b"v")] * 100)
        assert invoke("consume", "t", "-g", "readers", "-n", "100", "--from-beginning", env=env).code == 0
        side = Side("ottla", broker.bootstrap)
        one = Transactional(side, "x").find().begin()
        one.produce("u", version=12)
        side.close()
        assert invoke("txn", "abort", "x", env=env).code == 0
        url = broker.registry.url
        found = told(broker, "--registry", url)
    assert found.findings == [] and not found.not_checked
    assert found.fine == {each.id for each in (*CLUSTER.all, *SETTINGS.all)} - {"broker-disk-full"}


def test_an_advertised_address_that_does_not_answer(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        found = told(broker)
    assert found.level("broker-unreachable") == "problem" and str(port) in found.what("broker-unreachable")


def test_settings_of_a_running_broker(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", {"unclean.leader.election.enable": "true"}) as broker:
        found = told(broker)
    assert found.checks == {"unclean-default"} and found.what("unclean-default").startswith("broker 1: ")


def test_a_clock_that_is_ahead(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as broker:
        assert told(broker).level("clock-off") is None
        broker.clock.advance("1h")
        found = told(broker)
    assert found.level("clock-off") == "warning" and "s ahead of this machine" in found.what("clock-off")


def test_features_of_an_older_release(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path / 'data'}\ncontroller.listener.names=C\n"
        f"listeners=PLAINTEXT://127.0.0.1:0,C://127.0.0.1:{free_ports(1)[0]}\n"
        "listener.security.protocol.map=C:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    )
    assert invoke("format", str(path), "--release-version", "4.0", "--standalone").code == 0
    with EmbeddedBroker(tmp_path / "data") as broker:
        found = told(broker)
        assert found.level("features-behind") == "warning"
        command = found.do("features-behind").strip("`").split()[1:]
        assert invoke(*command, env={"OTTLA_BOOTSTRAP": broker.bootstrap}).code == 0
        assert told(broker).level("features-behind") is None, "what is to be typed helps"


def test_records_from_the_future(broker: EmbeddedBroker, client: Blocking, connection: RawConnection) -> None:
    client.admin.topics.create("tomorrow", 1, configs={"message.timestamp.after.max.ms": 1 << 60})
    write(connection, "tomorrow", 1, round(time.time() * 1000) + 50 * HOUR_MS)
    found = told(broker)
    assert found.level("record-times-future") == "warning" and "tomorrow-0" in found.what("record-times-future")
    client.admin.topics.delete("tomorrow")


def test_topics_with_unfit_settings(broker: EmbeddedBroker, client: Blocking) -> None:
    client.admin.topics.create("shreds", 1, configs={"segment.ms": 60_000})
    client.admin.topics.create("strict", 1, configs={"min.insync.replicas": 2})
    client.admin.topics.create("_schemas", 1, configs={"cleanup.policy": "delete"})
    found = told(broker)
    assert found.level("segments-short") == "warning" and "shreds: up to 10080" in found.what("segments-short")
    assert found.level("under-min-isr") == "problem" and "1 partition" in found.what("under-min-isr")
    assert found.level("schemas-not-compact") == "problem"
    for name in ("shreds", "strict", "_schemas"):
        client.admin.topics.delete(name)


def test_a_group_whose_consumers_are_gone(broker: EmbeddedBroker, client: Blocking, connection: RawConnection) -> None:
    client.admin.topics.create("orders", 1, configs={"retention.ms": 4 * HOUR_MS})
    now_ms = round(time.time() * 1000)
    write(connection, "orders", 10, now_ms - 2 * HOUR_MS)
    client.admin.groups.set_offsets("late", {TopicPartition("orders", 0): 4})
    found = told(broker)
    assert found.level("lag-old") == "warning" and "group late: 6 records in orders-0" in found.what("lag-old")
    assert found.level("group-abandoned") == "warning" and "6 records" in found.what("group-abandoned")
    assert found.level("lag-near-retention") is None
    client.admin.configs.set(Resource.topic("orders"), {"retention.ms": str(2 * HOUR_MS + 600_000)})
    found = told(broker)
    assert found.level("lag-near-retention") == "problem" and "first unread record" in found.what("lag-near-retention")
    client.admin.topics.delete_records("orders", {0: 8})
    assert "4 records of orders-0 are gone unread" in told(broker).what("lag-near-retention")
    client.admin.groups.set_offsets("late", {TopicPartition("orders", 0): 10})
    found = told(broker)
    assert {found.level(each) for each in ("lag-old", "group-abandoned", "lag-near-retention")} == {None}


def test_a_group_that_falls_behind(broker: EmbeddedBroker, client: Blocking, connection: RawConnection) -> None:
    client.admin.topics.create("flood")
    write(connection, "flood", 2_000)
    client.admin.groups.set_offsets("slow", {TopicPartition("flood", 0): 1})
    assert told(broker).level("lag-growing") is None
    stop = threading.Event()

    def flood() -> None:
        with RawConnection(broker.bootstrap) as own:
            while not stop.wait(0.1):
                write(own, "flood", 500)

    writer = threading.Thread(target=flood)
    writer.start()
    try:
        found = until(lambda: told(broker, sample="3s"), lambda found: found.level("lag-growing"))
    finally:
        stop.set()
        writer.join()
    assert "group slow was" in found.what("lag-growing")
    client.admin.topics.delete("flood")


def test_a_group_in_a_rebalance(broker: EmbeddedBroker, side: Side) -> None:
    with Crowd(side, "dancers", 9) as crowd:
        one = crowd.actor("one", rebalance_timeout_ms=600_000, session_timeout_ms=600_000)
        one.join()
        one.call(one.syncs({}))
        assert told(broker).level("group-rebalancing") is None
        two = crowd.actor("two", rebalance_timeout_ms=600_000, session_timeout_ms=600_000)
        two.start_join()
        found = until(lambda: told(broker), lambda found: found.level("group-rebalancing"))
        assert "group dancers was in PreparingRebalance" in found.what("group-rebalancing")


def test_a_transaction_that_nobody_knows(broker: EmbeddedBroker, client: Blocking, side: Side) -> None:
    client.admin.topics.create("hung")
    one = Transactional(side, "nobody").find().begin()
    one.produce("hung", version=10)
    found = told(broker)
    assert found.level("transaction-hanging") == "problem" and "hung-0 at offset 0" in found.what("transaction-hanging")
    command = found.do("transaction-hanging").strip("`").split()[1:]
    assert invoke(*command, env={"OTTLA_BOOTSTRAP": broker.bootstrap}).code == 0
    assert told(broker).level("transaction-hanging") is None, "what is to be typed helps"


def test_readers_held_up_by_a_transaction(
    broker: EmbeddedBroker, client: Blocking, connection: RawConnection, side: Side
) -> None:
    client.admin.topics.create("held")
    one = Transactional(side, "holder").find().begin()
    one.produce("held", version=12)
    assert told(broker).checks.isdisjoint({"stable-offset-held", "transaction-hanging"})
    write(connection, "held", 10_001)
    found = told(broker)
    assert found.level("stable-offset-held") == "warning" and "by holder" in found.what("stable-offset-held")
    assert found.level("transaction-hanging") is None
    assert invoke("txn", "abort", "holder", env={"OTTLA_BOOTSTRAP": broker.bootstrap}).code == 0
    until(lambda: told(broker), lambda found: found.level("stable-offset-held") is None)


def test_dead_letters(broker: EmbeddedBroker, client: Blocking, connection: RawConnection) -> None:
    client.admin.topics.create("paid.dlq")
    assert told(broker).level("dead-letters") is None
    write(connection, "paid.dlq", 3)
    found = told(broker)
    assert found.level("dead-letters") == "warning" and "paid.dlq holds 3 letters" in found.what("dead-letters")
    client.admin.topics.delete("paid.dlq")
    client.admin.topics.create("given-up")
    write(connection, "given-up", 1)
    assert told(broker).level("dead-letters") is None
    client.admin.configs.set(Resource(ResourceType.GROUP, "workers"), {"ottla.share.dlq.topic": "given-up"})
    with client.share_consumer(ShareOptions("workers")) as consumer:
        consumer.subscribe(["given-up"])
        consumer.poll(timeout_ms=100)
        assert "given-up holds 1 letter" in told(broker).what("dead-letters")
    client.admin.topics.delete("given-up")


def test_a_contract_that_nobody_can_meet_and_a_registry_that_is_away(broker: EmbeddedBroker, client: Blocking) -> None:
    client.admin.topics.create("signed", 1, configs={"ottla.schema.validation": "full"})
    assert "no registry was named" in told(broker).not_checked["contract-refuses-all"]
    (port,) = free_ports(1)
    found = told(broker, "--registry", f"http://127.0.0.1:{port}")
    assert found.level("registry-unreachable") == "problem" and str(port) in found.what("registry-unreachable")
    url = broker.registry.url
    found = told(broker, "--registry", url)
    assert found.level("contract-refuses-all") == "problem" and "signed-value" in found.what("contract-refuses-all")
    schema = '{"type": "record", "name": "S", "fields": []}'
    assert invoke("schema", "register", "signed-value", "-", "--registry", url, stdin=schema).code == 0
    assert told(broker, "--registry", url).level("contract-refuses-all") is None
    client.admin.topics.delete("signed")


def test_a_throttle_that_was_left_behind(broker: EmbeddedBroker, client: Blocking) -> None:
    env = {"OTTLA_BOOTSTRAP": broker.bootstrap}
    rate = "leader.replication.throttled.rate"
    assert invoke("config", "set", "broker", "1", f"{rate}=1000", env=env).code == 0
    found = told(broker)
    assert found.level("throttle-left") == "warning" and "broker" in found.what("throttle-left")
    assert invoke("config", "set", "broker", "1", "--unset", rate, env=env).code == 0
    assert told(broker).level("throttle-left") is None


def test_very_many_partitions(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", FEW) as broker, Blocking(broker.bootstrap) as client:
        client.admin.topics.create("many", 9_000)
        client.admin.topics.create("more", 1_001)
        found = told(broker)
    assert found.level("partitions-many") == "warning" and "broker 1 holds 10001" in found.what("partitions-many")


def test_the_disk_of_a_broker_fills(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={256 << 20}", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here (needs root)")
    try:
        with EmbeddedBroker(path / "data") as broker:
            words = ("-b", broker.bootstrap, "--sample", "0s")
            assert Told(*words).level("broker-disk-full") is None
            (path / "ballast").write_bytes(bytes(int(0.9 * (256 << 20))))
            assert Told(*words).level("broker-disk-full") == "warning"
            (path / "more").write_bytes(bytes(int(0.06 * (256 << 20))))
            assert Told(*words).level("broker-disk-full") == "problem"
    finally:
        subprocess.run(["umount", "-l", str(path)], capture_output=True, check=True)


def test_the_exit_status_and_combinations(broker: EmbeddedBroker, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092\nfoo=1\n")
    env = {"OTTLA_BOOTSTRAP": broker.bootstrap}
    alone = Told("--config", str(path), env=env)
    assert "setting-unknown" in alone.checks and "broker-fenced" not in alone.fine, "the environment names no cluster"
    both = Told("--config", str(path), "-b", broker.bootstrap, "--sample", "0s")
    assert "setting-unknown" in both.checks and "broker-fenced" in both.fine
