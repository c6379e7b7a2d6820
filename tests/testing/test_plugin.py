"""The pytest plugin, as its users have it: a real broker in the test process, any client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.testing.broker import EmbeddedBroker

pytest_plugins = ["pytester"]


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "error"}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []

        def more() -> list[bytes]:
            found.extend(message.value() for message in consumer.consume(count - len(found), 1.0))
            return found

        return until(more, lambda _: len(found) >= count)
    finally:
        consumer.close()


def test_a_client_writes_and_reads(ottla_broker: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    values = [b"%d" % number for number in range(100)]
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(WAIT_S) == 0
    assert consume(ottla_broker.bootstrap, "orders", 100) == values


def test_brokers_are_apart(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    first, second = ottla_broker_factory(), ottla_broker_factory(**{"num.partitions": 4})
    assert first.bootstrap != second.bootstrap
    with Blocking(first.bootstrap) as client:
        client.send("here", b"x")
        assert client.admin.topics.names() == ["here"]
    with Blocking(second.bootstrap) as client:
        assert client.admin.topics.names() == []
        client.send("wide", b"x")
        assert client.run(client.cluster.topic("wide")).partition_count == 4


def test_a_misspelt_setting_is_refused(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> None:
    with pytest.raises(ValueError, match=r"there is no setting num\.partitons, did you mean num\.partitions\?"):
        ottla_broker_factory(**{"num.partitons": 3})


def test_a_restart_keeps_data_and_address(ottla_broker: EmbeddedBroker) -> None:
    before = ottla_broker.bootstrap
    with Blocking(before) as client:
        client.send("kept", b"value", partition=0)
    ottla_broker.restart()
    assert ottla_broker.bootstrap == before
    assert consume(before, "kept", 1) == [b"value"]


def test_stopping_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    with EmbeddedBroker(tmp_path):
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="not of the form NAME://HOST:PORT"):
        EmbeddedBroker(tmp_path, {"listeners": "nonsense"}).start()


def test_the_fixture_works_in_a_strangers_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_it(ottla_broker):
            host, port = ottla_broker.bootstrap.split(":")
            assert int(port) > 0
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
