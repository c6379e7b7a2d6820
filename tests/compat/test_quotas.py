"""Clients that are throttled: Kafka's tools set the quota, real clients notice, and everything arrives."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent
from tests.compat.conftest import MakeTopic, Names, Node
from tests.support.java.programs import JavaServer, run_tool
from tests.support.waiting import WAIT_S, until

SetQuota = Callable[[str, str], None]


@pytest.fixture
def set_quota(java_commands: JavaServer, node: Node) -> SetQuota:
    """set_quota(client id, "key=value"), with kafka-configs."""

    def alter(client_id: str, quota: str) -> None:
        words = ["--bootstrap-server", node.bootstrap, "--alter", "--add-config", quota]
        words += ["--entity-type", "clients", "--entity-name", client_id]
        answer = java_commands.ask({"main": "kafka.admin.ConfigCommand", "args": words, "stdin": ""})
        assert answer["code"] == 0, answer

    return alter


@pytest.mark.tool("kafka-producer-perf-test 4.3.1")
@pytest.mark.feature("tool")
def test_a_java_producer_waits(set_quota: SetQuota, node: Node, make_topic: MakeTopic, new_name: Names) -> None:
    """Its own metrics have the time for which the broker told it to wait."""
    topic, client_id = make_topic(), new_name("perf")
    set_quota(client_id, "producer_byte_rate=200000")
    properties = [f"bootstrap.servers={node.bootstrap}", f"client.id={client_id}", "batch.size=100000"]
    done = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--num-records", "2400", "--record-size", "1000", "--throughput", "-1"),
        *("--print-metrics", "--producer-props", *properties),
    )
    assert done.returncode == 0, done.stderr
    assert "2400 records sent" in done.stdout
    found = re.search(r"produce-throttle-time-max:\{[^}]*\}\s*:\s*([\d.]+)", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > 100


def test_librdkafka_waits(set_quota: SetQuota, node: Node, make_topic: MakeTopic, new_name: Names) -> None:
    topic, client_id = make_topic(), new_name("rdkafka")
    told: list[float] = []

    def throttled(event: ThrottleEvent) -> None:
        told.append(event.throttle_time)

    set_quota(client_id, "producer_byte_rate=200000,consumer_byte_rate=200000")
    settings = {"bootstrap.servers": node.bootstrap, "client.id": client_id, "throttle_cb": throttled}
    producer = Producer({**settings, "linger.ms": 0, "batch.size": 100_000})
    for number in range(24):
        producer.produce(topic, number.to_bytes(100_000, "big"), partition=0)
    assert producer.flush(WAIT_S) == 0
    producer.poll(0)
    assert max(told) > 0.1  # seconds
    told.clear()
    consumer = Consumer({**settings, "group.id": client_id, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    read: list[bytes | None] = []
    until(lambda: read.extend(each.value() for each in consumer.consume(10, 0.1)) or len(read) == 24)
    assert read == [number.to_bytes(100_000, "big") for number in range(24)]
    assert max(told) > 0.1
    consumer.close()
