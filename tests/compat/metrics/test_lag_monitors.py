"""Burrow and OpenTelemetry's kafkametrics tell the lag of a group of librdkafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.conftest import Names, Node
from tests.support import tools
from tests.support.processes.lag_monitors import burrow, collector
from tests.support.waiting import WAIT_S, until


class Group:
    """A member of a group that reads a topic of one partition."""

    def __init__(self, bootstrap: str, name: str, topic: str) -> None:
        self.name, self.topic, self.written = name, topic, 0
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "reader",
                "group.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])

    def write(self, count: int) -> None:
        for _ in range(count):
            self._producer.produce(self.topic, b"x", partition=0)
        assert self._producer.flush(WAIT_S) == 0
        self.written += count

    def read(self, count: int) -> None:
        """Read so many more records and commit."""
        for _ in range(count):
            found = until(lambda: self._consumer.poll(1.0))
            assert found.error() is None, found.error()
        self._consumer.commit(message=found, asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def group(node: Node, new_name: Names) -> Iterator[Group]:
    topic = new_name("lagging")
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    (made,) = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)]).values()
    made.result(WAIT_S)
    found = Group(node.bootstrap, new_name("group"), topic)
    found.write(10)
    found.read(3)
    yield found
    found.close()


@pytest.mark.tool("Burrow 1.9.6")
@pytest.mark.feature("lag of a group, read from __consumer_offsets")
def test_burrow(node: Node, group: Group, tmp_path: Path) -> None:
    tools.require(tools.missing_burrow())
    with burrow(tmp_path, node.bootstrap) as monitor:

        def lag() -> int | None:
            found = monitor.lag(group.name)
            return found and found["totallag"]

        until(lag, lambda found: found == 7)
        group.write(5)
        group.read(4)
        until(lag, lambda found: found == 8)
        group.read(8)
        until(lag, lambda found: found == 0)
        found = monitor.lag(group.name)
        assert found is not None
        (partition,) = found["partitions"]
        assert (partition["topic"], partition["partition"], partition["end"]["offset"]) == (group.topic, 0, 15)
        assert (partition["client_id"], partition["owner"]) == ("reader", "/127.0.0.1"), "from the group's metadata"
        assert partition["status"] == "OK"


@pytest.mark.tool("OpenTelemetry collector 0.145.0, kafkametrics")
@pytest.mark.feature("brokers, partitions, lag and members of groups")
def test_kafkametrics(node: Node, group: Group, tmp_path: Path) -> None:
    tools.require(tools.missing_collector())
    labels = {"group": group.name, "topic": group.topic}
    with collector(tmp_path, node.bootstrap) as monitor:

        def lag() -> list[int]:
            return monitor.points("kafka.consumer_group.lag", partition="0", **labels)

        until(lag, lambda found: found == [7])
        group.write(5)
        group.read(4)
        until(lag, lambda found: found == [8])
        group.read(8)
        until(lag, lambda found: found == [0])
        assert monitor.points("kafka.consumer_group.offset", partition="0", **labels) == [15]
        assert monitor.points("kafka.consumer_group.members", group=group.name) == [1]
        assert monitor.points("kafka.partition.current_offset", topic=group.topic) == [15]
        assert monitor.points("kafka.topic.partitions", topic=group.topic) == [1]
        assert monitor.points("kafka.brokers") == [1]
