"""What is said of groups of Java clients, and of groups of a real Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import invoke
from tests.compat.conftest import Names, Node
from tests.compat.test_streams import Application
from tests.server.metrics.scraping import ON, scraped
from tests.support.clients.assigned import Java
from tests.support.clients.members import ASSIGNORS
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import until

from ottla.testing.broker import EmbeddedBroker

pytestmark = pytest.mark.compat
STALL_MS = 20_000


@contextmanager
def java_member(java: Java, bootstrap: str, group: str, topic: str, **config: str) -> Iterator[str]:
    name = f"member of {group}"
    settings = {"group.id": group, "client.id": "till", **config}
    java._server.ask(
        {"verb": "join", "bootstrap": bootstrap, "member": name, "topics": [topic], "pattern": None, "config": settings}
    )
    try:
        until(lambda: java._server.ask({"verb": "state", "member": name, "from": 0})["assigned"])
        yield name
    finally:
        java._server.ask({"verb": "leave", "member": name})


def explain(bootstrap: str, group: str) -> Any:
    done = invoke("group", "explain", group, "--json", "-s", "0.2", env={"OTTLA_BOOTSTRAP": bootstrap})
    assert done.code == 0, done.err
    return done.json


@pytest.mark.tool("java 4.3.1")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_application_that_does_not_poll_in_time(
    protocol: str, brisk_node: Node, java_431: Java, new_name: Names
) -> None:
    topic, group = new_name("polls"), new_name("polls")
    java_431.ask("create_topic", brisk_node.bootstrap, topic=topic, partitions=1)
    config = {"max.poll.interval.ms": "1000", "group.protocol": protocol}
    if protocol == "classic":
        config["partition.assignment.strategy"] = ASSIGNORS["range"]
    with java_member(java_431, brisk_node.bootstrap, group, topic, **config) as name:
        java_431._server.ask({"verb": "stall", "member": name, "ms": STALL_MS})
        found = until(
            lambda: explain(brisk_node.bootstrap, group),
            lambda told: any(each["kind"] == "left" for each in told["events"]),
        )
        (left,) = (each for each in found["events"] if each["kind"] == "left")
        assert "member till of host 127.0.0.1 left" in left["text"]
        if protocol == "classic":
            assert "poll timeout has expired" in left["text"]
            assert "raise max.poll.interval.ms" in left["advice"]


@pytest.mark.tool("Kafka Streams 4.3.1")
def test_streams_application_that_is_killed(java_431: Java, new_name: Names, tmp_path: Path) -> None:
    """Its group of the kind streams has a timeline, and its rebalances are counted."""
    brisk = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.min.session.timeout.ms": "1000"}
    brisk |= {"group.streams.session.timeout.ms": "3000", "group.streams.min.heartbeat.interval.ms": "500"}
    brisk |= {"group.streams.heartbeat.interval.ms": "1000", "offsets.topic.num.partitions": "1"}
    with EmbeddedBroker(tmp_path / "data", ON | brisk) as broker:
        name = new_name("app")
        made = Application(name, "streams", broker.bootstrap, java_431, tmp_path)
        made.feed(range(20))
        try:
            made.app.start()
            until(lambda: made.counts(), len)
            running = until(lambda: explain(broker.bootstrap, name), lambda told: told["state"] == "Stable")
            assert {"joined", "rebalance_began", "assigned"} <= {each["kind"] for each in running["events"]}
        finally:
            made.app.kill()
        found = until(
            lambda: explain(broker.bootstrap, name),
            lambda told: any(each["kind"] == "timed_out" for each in told["events"]),
        )
        gone = next(each for each in found["events"] if each["kind"] == "timed_out")
        assert f"ottla config set group {name} streams.session.timeout.ms=" in gone["advice"]
        assert scraped(broker)("ottla_group_rebalances_total") >= 1


@pytest.mark.tool("java 4.3.1")
def test_java_leader_that_finds_new_partitions(brisk_node: Node, java_431: Java, new_name: Names) -> None:
    topic, group = new_name("grows"), new_name("grows")
    java_431.ask("create_topic", brisk_node.bootstrap, topic=topic, partitions=1)
    config = {"partition.assignment.strategy": ASSIGNORS["range"], "metadata.max.age.ms": "500"}
    with java_member(java_431, brisk_node.bootstrap, group, topic, **config):
        env = {"OTTLA_BOOTSTRAP": brisk_node.bootstrap}
        assert invoke("topic", "add-partitions", topic, "3", env=env).code == 0
        found = until(
            lambda: explain(brisk_node.bootstrap, group),
            lambda told: any(each["kind"] == "rejoined" for each in told["events"]),
        )
        kinds = [each["kind"] for each in found["events"]]
        assert kinds.index("topics_changed") < kinds.index("rejoined")
        assert any(each["text"] == f"topics that the group reads changed: {topic}=3" for each in found["events"])


def test_real_kafka_has_no_timeline(real_kafka: RealKafka, new_name: Names) -> None:
    topic, group = new_name("told"), new_name("told")
    env = {"OTTLA_BOOTSTRAP": real_kafka.bootstrap}

    def ottla(*arguments: str, stdin: str | None = None) -> str:
        done = invoke(*arguments, stdin=stdin, env=env)
        assert done.code == 0, done.err
        return done.out

    ottla("topic", "create", topic, "-p", "2")
    ottla("produce", topic, stdin="".join(f"{number}\n" for number in range(20)))
    ottla("consume", topic, "-g", group, "--from-beginning", "-n", "5")
    found = explain(real_kafka.bootstrap, group)
    assert [each["cause"] for each in found["causes"]] == ["no_consumer"]
    assert "15 records behind" in found["causes"][0]["summary"]
    assert found["events"] is None
    assert "only Ottla's do" in ottla("group", "explain", group, "-s", "0.2")
    assert '"lag"' in ottla("group", "lag", group, "-i", "0.2", "--json")
    assert "partition" in ottla("topic", "hot", topic, "-s", "0.2")
