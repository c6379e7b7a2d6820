"""Replication as Kafka's own clients and tools see it, on three real processes with two data directories each: what is
throttled is slow, what returns disturbs nobody, histories that parted are one again."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.support.java.programs import JavaServer
from tests.support.processes.clusters import METADATA_VERSION, OttlaCluster
from tests.support.waiting import WAIT_S, until

from ottla.log.files.names import LOG
from ottla.wire.messages.topics.metadata import MetadataRequest

TOOLS = "org.apache.kafka.tools."
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"
TOPICS, CONFIGS = TOOLS + "TopicCommand", "kafka.admin.ConfigCommand"
PROPERTIES = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "replica.lag.time.max.ms": "3000",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "100",
    "auto.leader.rebalance.enable": "false",
    "offsets.topic.num.partitions": "3",
}


class TwoDisks(OttlaCluster):
    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = super().settings_of(id, directory)
        return settings | {"log.dirs": f"{settings['log.dirs']},{directory / 'more'}", "broker.rack": f"rack-{id}"}

    def directories(self, id: int) -> list[Path]:
        return [self.directory / f"node-{id}" / name for name in ("data", "more")]


class Tools:
    """Kafka's command-line tools on the cluster, and librdkafka's producer."""

    def __init__(self, cluster: TwoDisks, java: JavaServer) -> None:
        self.cluster = cluster
        self._java = java

    def run(self, main: str, *words: str) -> str:
        args = ["--bootstrap-server", self.cluster.bootstrap, *words]
        answer = self._java.ask({"main": main, "args": args, "stdin": ""})
        assert answer["code"] == 0, answer
        return str(answer["out"])

    def create(self, topic: str, replicas: str, **configs: object) -> None:
        settings = [word for key, value in configs.items() for word in ("--config", f"{key.replace('_', '.')}={value}")]
        self.run(TOPICS, "--create", "--topic", topic, "--replica-assignment", replicas, *settings)
        wanted = {int(id) for id in replicas.split(":")}
        until(lambda: self.isr(topic), lambda found: found == wanted)

    def described(self, topic: str) -> Any:
        request = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False)
        found = self.cluster.ask(request, METADATA_VERSION).topics[0].partitions
        return found[0] if found else None

    def isr(self, topic: str) -> set[int]:
        found = self.described(topic)
        return set() if found is None else set(found.isr_nodes)

    def write(self, topic: str, values: list[bytes], *, keys: list[bytes] | None = None) -> None:
        with self.producer() as producer:
            for at, value in enumerate(values):
                producer.produce(topic, value, key=None if keys is None else keys[at], partition=0, on_delivery=safe)

    @contextmanager
    def producer(self) -> Iterator[Any]:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.cluster.bootstrap, "acks": "all", "log_level": 0, "linger.ms": 0}
        )
        yield producer
        assert producer.flush(60) == 0

    def read(self, topic: str) -> list[bytes]:
        """All of the partition, wherever it is led."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.cluster.bootstrap, "group.id": "none", "log_level": 0}
        )
        try:
            where = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)
            _, end = until(lambda: consumer.get_watermark_offsets(where, timeout=WAIT_S))
            consumer.assign([where])
            found: list[bytes] = []
            deadline = time.monotonic() + WAIT_S
            while consumer.position([where])[0].offset < end and end:
                assert time.monotonic() < deadline
                record = consumer.poll(0.1)
                if record is not None:
                    assert record.error() is None, record.error()
                    found.append(record.value() or b"")
            return found
        finally:
            consumer.close()

    def directory_of(self, id: int, topic: str) -> Path:
        (found,) = [each for each in self.cluster.directories(id) if (each / f"{topic}-0").is_dir()]
        return found

    def on_disk(self, id: int, topic: str) -> bytes:
        home = self.directory_of(id, topic) / f"{topic}-0"
        return b"".join(path.read_bytes() for path in sorted(home.glob(f"*{LOG}")))


def safe(error: Any, _: Any) -> None:
    assert error is None, error


@pytest.fixture(scope="module")
def tools(java_commands: JavaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    cluster = TwoDisks(tmp_path_factory.mktemp("cluster"), properties=PROPERTIES)
    try:
        cluster.start()
        yield Tools(cluster, java_commands)
    finally:
        cluster.stop()


def plan(path: Path, topic: str, replicas: list[int], log_dirs: list[str] | None = None) -> tuple[str, str]:
    """The words that name a plan of one partition."""
    move = {"topic": topic, "partition": 0, "replicas": replicas} | ({} if log_dirs is None else {"log_dirs": log_dirs})
    path.write_text(json.dumps({"version": 1, "partitions": [move]}))
    return "--reassignment-json-file", str(path)


def test_a_java_consumer_reads_in_its_rack(tools: Tools, tmp_path: Path) -> None:
    """Its metrics tell from whom; the leader gives nothing to whom it has sent elsewhere."""
    tools.create("near", "1:2:3")
    tools.write("near", [b"%d" % number for number in range(200)])
    for rack, wanted in (("rack-3", 3), ("rack-1", -1), ("nowhere", -1)):
        config = tmp_path / rack
        config.write_text(f"client.rack={rack}\n")
        words = ("--topic", "near", "--num-records", "200", "--command-config", str(config), "--print-metrics")
        said = tools.run(TOOLS + "ConsumerPerformance", *words)
        found = re.search(r"preferred-read-replica:\{[^}]*\} *: (-?\d+)", said)
        assert found is not None and int(found[1]) == wanted, (rack, said)
        assert re.search(r", 200, ", said), said  # all of them came


def test_a_reassignment_is_no_faster_than_its_throttle(tools: Tools, tmp_path: Path) -> None:
    tools.create("moved", "1:2")
    tools.write("moved", [b"x" * 500_000] * 12)
    words = plan(tmp_path / "plan.json", "moved", [1, 3])
    tools.run(REASSIGN, *words, "--execute", "--throttle", "100000")
    # Nothing is held back before the rate has been exceeded once: at most some batches are there at first.
    until(lambda: tools.cluster.directories(3), lambda homes: any((home / "moved-0").is_dir() for home in homes))
    tools.write("near", [b"meanwhile"])
    assert "still in progress" in tools.run(REASSIGN, *words, "--verify")
    assert len(tools.on_disk(3, "moved")) < 5_000_000
    assert 3 not in tools.isr("moved")
    # The follower holds itself back as well, and knows that from its start on.
    tools.run(CONFIGS, "--alter", "--topic", "moved", "--delete-config", "leader.replication.throttled.replicas")
    tools.cluster.kill(3)
    tools.cluster.start_node(3)
    until(lambda: tools.isr("near"), lambda found: found == {1, 2, 3})
    assert 3 not in tools.isr("moved")
    tools.run(REASSIGN, *words, "--execute", "--additional", "--throttle", "100000000")
    until(lambda: tools.isr("moved"), lambda found: found == {1, 3})
    until(lambda: tools.run(REASSIGN, *words, "--verify"), lambda said: "moved-0 is completed" in said)
    assert "throttled" not in tools.run(CONFIGS, "--describe", "--topic", "moved")
    assert tools.on_disk(3, "moved") == tools.on_disk(1, "moved")


def test_a_replica_changes_directories_while_it_is_written_to(tools: Tools, tmp_path: Path) -> None:
    tools.create("inside", "1:2:3")
    tools.write("inside", [b"x" * 100_000] * 20)
    there = {}
    for id in (1, 2):  # the leader and a follower
        (there[id],) = [each for each in tools.cluster.directories(id) if each != tools.directory_of(id, "inside")]
    words = plan(tmp_path / "plan.json", "inside", [1, 2, 3], [str(there[1]), str(there[2]), "any"])
    tools.run(REASSIGN, *words, "--execute", "--replica-alter-log-dirs-throttle", "1000000")
    tools.write("inside", [b"%d" % number for number in range(50)])
    until(lambda: tools.run(REASSIGN, *words, "--verify"), lambda said: said.count("completed successfully") >= 2)
    assert {id: tools.directory_of(id, "inside") for id in there} == there
    tools.write("inside", [b"later"])
    until(lambda: tools.on_disk(2, "inside") == tools.on_disk(3, "inside") == tools.on_disk(1, "inside"))
    assert tools.read("inside")[20:] == [*(b"%d" % number for number in range(50)), b"later"]
    lying = json.loads(tools.run(TOOLS + "LogDirsCommand", "--describe", "--topic-list", "inside").splitlines()[-1])
    held = {
        broker["broker"]: [each["logDir"] for each in broker["logDirs"] if each["partitions"]]
        for broker in lying["brokers"]
    }
    assert held[1] == [str(there[1])] and held[2] == [str(there[2])]


def test_who_returns_disturbs_nobody(tools: Tools) -> None:
    """While a broker catches up with much, others write without an error and their in-sync replicas stay."""
    tools.create("much", "1:2:3")
    tools.create("busy", "2:1:3")
    tools.cluster.kill(3)
    tools.write("much", [b"x" * 200_000] * 100)
    stop, sent, seen = threading.Event(), [0], set[frozenset[int]]()

    def work() -> None:
        with tools.producer() as producer:
            while not stop.is_set():
                producer.produce("busy", b"%d" % sent[0], partition=0, on_delivery=safe)
                sent[0] += 1
                producer.poll(0)
                if sent[0] % 20 == 0:
                    assert producer.flush(WAIT_S) == 0

    with beside(work):
        until(lambda: sent[0] > 100)
        tools.cluster.start_node(3)

        def caught_up() -> bool:
            seen.add(frozenset(tools.isr("busy")))
            return tools.isr("much") == tools.isr("busy") == {1, 2, 3}

        until(caught_up)
        stop.set()
    assert all(isr >= {1, 2} for isr in seen)
    assert tools.read("busy") == [b"%d" % number for number in range(sent[0])]
    assert tools.on_disk(3, "much") == tools.on_disk(1, "much")


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[None]:
    """Runs `work` in a thread; what it raises is raised at the end."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
    assert not failures and not thread.is_alive(), failures


def test_what_an_unclean_election_loses_is_lost_everywhere(tools: Tools) -> None:
    """The former leader has records of an epoch that the new one never saw, and gives them up."""
    tools.create("unclean", "1:2", min_insync_replicas=1)
    tools.write("unclean", [b"both"])
    tools.cluster.kill(2)
    until(lambda: tools.isr("unclean"), lambda found: found == {1})
    tools.write("unclean", [b"one alone", b"and more"])
    tools.cluster.kill(1)
    tools.cluster.start_node(2)
    until(lambda: tools.described("unclean").leader_id, lambda leader: leader == -1)
    election = TOOLS + "LeaderElectionCommand"
    tools.run(election, "--election-type", "unclean", "--topic", "unclean", "--partition", "0")
    until(lambda: tools.cluster.leader_of("unclean"), lambda leader: leader == 2)
    tools.write("unclean", [b"two"])
    tools.cluster.start_node(1)
    until(lambda: tools.isr("unclean"), lambda found: found == {1, 2})
    assert tools.read("unclean") == [b"both", b"two"]
    tools.run(election, "--election-type", "preferred", "--topic", "unclean", "--partition", "0")
    until(lambda: tools.cluster.leader_of("unclean"), lambda leader: leader == 1)
    tools.write("unclean", [b"three"])
    assert tools.read("unclean") == [b"both", b"two", b"three"]
    until(lambda: tools.on_disk(1, "unclean") == tools.on_disk(2, "unclean"))


def test_a_topic_made_anew_under_its_name_while_a_replica_was_away(tools: Tools) -> None:
    tools.create("again", "1:2:3")
    tools.write("again", [b"old"] * 5)
    tools.cluster.kill(3)
    tools.run(TOPICS, "--delete", "--topic", "again")
    until(lambda: tools.described("again"), lambda found: found is None)
    tools.run(TOPICS, "--create", "--topic", "again", "--replica-assignment", "3:1:2")
    tools.write("again", [b"new"] * 2)
    tools.cluster.start_node(3)
    until(lambda: tools.isr("again"), lambda found: found == {1, 2, 3})
    tools.run(TOOLS + "LeaderElectionCommand", "--election-type", "preferred", "--topic", "again", "--partition", "0")
    until(lambda: tools.cluster.leader_of("again"), lambda leader: leader == 3)
    assert tools.read("again") == [b"new"] * 2


def test_a_replica_that_returns_after_a_compaction_has_the_last_of_each_key(tools: Tools) -> None:
    tools.create("compacted", "1:2:3", cleanup_policy="compact", segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.01)
    keys = [b"key-%d" % (number % 7) for number in range(400)]
    tools.write("compacted", [b"%d-" % number + b"x" * 12_000 for number in range(200)], keys=keys[:200])
    tools.cluster.kill(3)
    tools.write("compacted", [b"%d-" % number + b"x" * 12_000 for number in range(200, 400)], keys=keys[200:])
    until(lambda: len(tools.on_disk(1, "compacted")), lambda size: size < 2_000_000)
    tools.cluster.start_node(3)
    until(lambda: tools.isr("compacted"), lambda found: found == {1, 2, 3})
    words = plan(tools.cluster.directory / "first.json", "compacted", [3, 1, 2])
    tools.run(REASSIGN, *words, "--execute")
    election = TOOLS + "LeaderElectionCommand"
    tools.run(election, "--election-type", "preferred", "--topic", "compacted", "--partition", "0")
    until(lambda: tools.cluster.leader_of("compacted"), lambda leader: leader == 3)
    tools.write("compacted", [b"400-last"], keys=[b"key-0"])
    last: dict[int, int] = {}
    for value in tools.read("compacted"):
        number = int(value.split(b"-")[0])
        last[number % 7 if number < 400 else 0] = number
    assert last == {0: 400} | {key: max(number for number in range(400) if number % 7 == key) for key in range(1, 7)}
