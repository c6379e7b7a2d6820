"""A stopped Kafka's data directory, served by Ottla as it is; and given back to Kafka afterwards."""

from pathlib import Path

import pytest
from tests.support.kafka import RealKafka
from tests.support.node import OttlaNode

from ottla.client.blocking import Blocking
from ottla.client.producer import ProducerOptions
from ottla.model.resources import Resource
from ottla.records.compress import Codec


def write(bootstrap: str, topic: str, values: list[bytes], codec: Codec = Codec.NONE) -> None:
    with Blocking(bootstrap, ProducerOptions(codec=codec)) as client:
        client.send_all(topic, [(b"key", value) for value in values])


def read(bootstrap: str, topic: str) -> list[bytes | None]:
    with Blocking(bootstrap) as client:
        return [record.value for record in client.read(topic)]


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_ottla_serves_what_kafka_wrote_and_gives_it_back(tmp_path: Path, ending: str) -> None:
    kafka = RealKafka(tmp_path / "kafka").start()
    first = [b"by kafka %d" % number for number in range(500)]
    try:
        with Blocking(kafka.bootstrap) as client:
            client.run(client.admin.topics.create("moved", partitions=1, configs={"retention.ms": "99999999"}))
        write(kafka.bootstrap, "moved", first, Codec.ZSTD)
    finally:
        if ending == "killed":
            kafka.kill()
        else:
            kafka.stop()

    node = OttlaNode(tmp_path / "ottla", properties=kafka.properties, data_dir=kafka.data_dir)
    second = [b"by ottla %d" % number for number in range(500)]
    node.start()
    try:
        assert read(node.bootstrap, "moved") == first
        write(node.bootstrap, "moved", second, Codec.LZ4)
        assert read(node.bootstrap, "moved") == first + second
        with Blocking(node.bootstrap) as client:
            found = client.run(client.admin.configs.describe(Resource.topic("moved")))
            assert {entry.name: entry.value for entry in found}["retention.ms"] == "99999999"
    finally:
        node.stop()

    kafka.start()
    try:
        assert read(kafka.bootstrap, "moved") == first + second
    finally:
        kafka.stop()
