"""A million records in and out, compared by a hash over every byte."""

import hashlib
import itertools
import time
from collections.abc import Iterator

import confluent_kafka
import pytest
from tests.compat.conftest import MakeTopic, Node
from tests.support.clients.assigned import Confluent

COUNT = 1_000_000
PARTITIONS = 4


def values() -> Iterator[bytes]:
    """Values of 20 to 119 bytes, all different."""
    padding = bytes(range(100))
    return (b"%020d" % at + padding[: at % 100] for at in itertools.count())


@pytest.fixture
def client() -> Confluent:
    return Confluent()


@pytest.mark.slow
@pytest.mark.feature("a million records, by hash")
def test_million(client: Confluent, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic("million", PARTITIONS)
    sent = produce(node.bootstrap, topic)
    assert consume(node.bootstrap, topic) == sent


def produce(bootstrap: str, topic: str) -> list[str]:
    """The hash of what went to each partition."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    failures: list[object] = []
    hashes = [hashlib.sha256() for _ in range(PARTITIONS)]
    for at, value in enumerate(itertools.islice(values(), COUNT)):
        partition = at % PARTITIONS
        hashes[partition].update(value)
        while True:
            try:
                producer.produce(
                    topic, value, partition=partition, on_delivery=lambda error, _: error and failures.append(error)
                )
                break
            except BufferError:
                producer.poll(0.05)
        if at % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0 and failures == []
    return [each.hexdigest() for each in hashes]


def consume(bootstrap: str, topic: str) -> list[str]:
    """The hash of what each partition holds; offsets must be dense."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    hashes = [hashlib.sha256() for _ in range(PARTITIONS)]
    next_offset = [0] * PARTITIONS
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        deadline = time.monotonic() + 120
        while sum(next_offset) < COUNT and time.monotonic() < deadline:
            for message in consumer.consume(10_000, timeout=0.5):
                assert message.error() is None, message.error()
                partition = message.partition()
                assert message.offset() == next_offset[partition]
                next_offset[partition] += 1
                hashes[partition].update(message.value())
    finally:
        consumer.close()
    assert next_offset == [COUNT // PARTITIONS] * PARTITIONS
    return [each.hexdigest() for each in hashes]
