"""One cluster of Ottla's nodes and Kafka's: each registers with the other's controllers, leads, follows, votes.

That is how people can move over broker by broker, and back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.cluster.whole import create, until_in_sync
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.support.java.programs import run_tool
from tests.support.processes.clusters import Member, MixedCluster, running
from tests.support.waiting import WAIT_S

TOPIC = "mixed"
PARTITIONS = 3
RECORDS = 600
LOG = "__cluster_metadata-0/00000000000000000000.log"

MIXES = {
    "kafka broker under our controller": ("ottla controller", "ottla broker", "kafka broker"),
    "our broker under kafka's controller": ("kafka controller", "ottla broker", "kafka broker"),
}
QUORUM = ("ottla broker,controller", "kafka broker,controller", "ottla broker,controller")
PROPERTIES = {
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    # Kafka's controller misses a broker that was killed only when its session is over; by default that takes 9 s.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


def members(words: Sequence[str]) -> list[Member]:
    return [Member(*word.split(" ")) for word in words]


def produce(cluster: MixedCluster, numbers: range) -> None:
    """With acks=all, by librdkafka; every record must be acknowledged."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
    )
    failures: list[object] = []

    def answered(error: object, _: object) -> None:
        if error is not None:
            failures.append(error)

    for number in numbers:
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS, on_delivery=answered)
    assert producer.flush(WAIT_S) == 0
    assert not failures, failures[:3]


def consumed(cluster: MixedCluster, expected: int) -> dict[int, list[int]]:
    """What each partition holds, in order, once all of it is to be read."""
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": False, "log_level": 0}
    )
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
    deadline = time.monotonic() + WAIT_S
    while sum(map(len, found.values())) < expected and time.monotonic() < deadline:
        for message in consumer.consume(1_000, timeout=1):
            if message.error() is None:
                found[message.partition()].append(int(message.value()))
            elif not message.error().retriable():
                raise KafkaException(message.error())
    consumer.close()
    return found


def check(cluster: MixedCluster, count: int) -> None:
    wanted = {index: list(range(index, count, PARTITIONS)) for index in range(PARTITIONS)}
    assert consumed(cluster, count) == wanted


@pytest.mark.parametrize("mix", MIXES)
def test_brokers_of_both_kinds_replicate_from_each_other(mix: str, tmp_path: Path) -> None:
    cluster = MixedCluster(tmp_path, members(MIXES[mix]), properties=PROPERTIES)
    with running(cluster):
        kill_one_by_one(cluster)


def test_a_quorum_of_both(tmp_path: Path) -> None:
    """Controllers die with their brokers; in the end Kafka reads the same metadata log on all of them."""
    cluster = MixedCluster(tmp_path, members(QUORUM), properties=PROPERTIES)
    with running(cluster):
        kill_one_by_one(cluster)
    logs = []
    for id in cluster.ids:
        done = run_tool(
            "org.apache.kafka.tools.DumpLogSegments",
            *("--cluster-metadata-decoder", "--files", str(cluster.data_directory(id) / LOG)),
        )
        assert done.returncode == 0, done.stderr
        assert f'"name":"{TOPIC}"' in done.stdout
        logs.append([line for line in done.stdout.splitlines() if "payload" in line])
    shortest = min(map(len, logs))
    assert shortest > 20
    assert logs[0][:shortest] == logs[1][:shortest] == logs[2][:shortest]


def kill_one_by_one(cluster: MixedCluster) -> None:
    """Every broker once; what is acknowledged before and meanwhile is there, and nothing else."""
    create(cluster, [TOPIC], PARTITIONS, len(cluster.brokers))
    until_in_sync(cluster, [TOPIC], PARTITIONS)
    count = 0
    for victim in cluster.brokers:
        produce(cluster, range(count, count + RECORDS))
        count += RECORDS
        cluster.kill(victim)
        produce(cluster, range(count, count + RECORDS))
        count += RECORDS
        check(cluster, count)
        cluster.start_node(victim)
        until_in_sync(cluster, [TOPIC], PARTITIONS)
    leaders = {cluster.leader_of(TOPIC, index) for index in range(PARTITIONS)}
    assert leaders <= set(cluster.brokers)
    check(cluster, count)
