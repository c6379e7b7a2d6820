"""A full disk: that partition says so, the node and the other directory go on, and it recovers when space returns."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import confluent_kafka
import pytest
from tests.support import mounts
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

SMALL_BYTES = 8 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounts.small_disk(tmp_path / "small", SMALL_BYTES) as path:
        yield path


def produce(connection: RawConnection, topic: str, index: int, value: bytes) -> tuple[int, int]:
    """(error code, base offset) of one record."""
    batch = build_batch([(None, value)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[ProduceRequest.TopicProduceData.PartitionProduceData(index=index, records=batch)],
            )
        ],
    )
    answer = connection.call(request, 9).responses[0].partition_responses[0]  # type: ignore[attr-defined]
    return answer.error_code, answer.base_offset


def create(connection: RawConnection, topic: str, partitions: int) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=topic, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
            )
        ],
        timeout_ms=10_000,
    )
    answer = connection.call(request, 5)
    assert answer.topics[0].error_code == 0, answer  # type: ignore[attr-defined]


def test_full_disk_refuses_and_recovers(small_disk: Path, tmp_path: Path) -> None:
    roomy = tmp_path / "roomy"
    with EmbeddedBroker(tmp_path, {"log.dirs": f"{roomy},{small_disk}"}) as broker:
        connection = RawConnection(broker.bootstrap)
        create(connection, "t", 2)
        homes = directories(connection)
        small, large = homes[str(small_disk)][0], homes[str(roomy)][0]
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * (4 * 1024 * 1024))

        accepted = 0
        for _ in range(40):
            error, offset = produce(connection, "t", small, b"y" * 500_000)
            if error:
                assert error == ErrorCode.KAFKA_STORAGE_ERROR
                break
            assert offset == accepted
            accepted += 1
        else:
            raise AssertionError("the disk never got full")
        assert accepted > 2

        assert produce(connection, "t", large, b"other directory")[0] == 0, "the other directory goes on"
        assert produce(connection, "t", small, b"y" * 500_000)[0] == ErrorCode.KAFKA_STORAGE_ERROR

        ballast.unlink()
        assert produce(connection, "t", small, b"y" * 500_000) == (0, accepted), "space came back, offsets go on"
        connection.close()

    with EmbeddedBroker(tmp_path, {"log.dirs": f"{roomy},{small_disk}"}) as broker:
        connection = RawConnection(broker.bootstrap)
        assert produce(connection, "t", small, b"after restart") == (0, accepted + 1)
        connection.close()


def directories(connection: RawConnection) -> dict[str, list[int]]:
    """Log directory → the partitions of topic t in it."""
    answer = connection.call(DescribeLogDirsRequest(topics=None), 4)
    return {
        found.log_dir: [
            partition.partition_index for topic in found.topics if topic.name == "t" for partition in topic.partitions
        ]
        for found in answer.results  # type: ignore[attr-defined]
    }


def test_a_read_only_directory_keeps_its_partitions_back_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    settings = {"log.dirs": f"{tmp_path / 'roomy'},{small_disk}"}
    with EmbeddedBroker(tmp_path, settings) as broker, RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2)
        (small,) = directories(connection)[str(small_disk)]
        assert produce(connection, "t", small, b"before") == (0, 0)
        assert produce(connection, "t", 1 - small, b"before") == (0, 0)
    remount(small_disk, "ro")
    try:
        with EmbeddedBroker(tmp_path, settings) as broker, RawConnection(broker.bootstrap) as connection:
            assert produce(connection, "t", small, b"refused")[0] == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(connection, "t", 1 - small, b"fine") == (0, 1)
    finally:
        remount(small_disk, "rw")
    with EmbeddedBroker(tmp_path, settings) as broker, RawConnection(broker.bootstrap) as connection:
        assert produce(connection, "t", small, b"after") == (0, 1), "nothing began anew"
        assert produce(connection, "t", 1 - small, b"fine") == (0, 2)


def fill(path: Path) -> None:
    with (path / "ballast").open("ab", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def read(bootstrap: str, count: int) -> list[int]:
    """The offsets of the first records of t-0."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "all", "enable.auto.commit": False}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        found: list[int] = []
        while len(found) < count:
            found += [message.offset() or 0 for message in until(lambda: consumer.consume(count, 0.2))]
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_a_node_starts_on_a_full_disk_and_lets_its_topics_be_deleted(small_disk: Path, ending: str) -> None:
    """Kafka 4.3.1 ends when an append finds its only disk full, and does not start on it any more."""
    brief = {
        "log.segment.delete.delay.ms": "0",
        "log.retention.check.interval.ms": "200",
        "log.segment.bytes": "1048576",
    }
    node = OttlaNode(small_disk, properties=SINGLE_NODE | brief).start()
    try:
        with RawConnection(node.bootstrap) as connection:
            create(connection, "t", 1)
            create(connection, "u", 1)
            offsets = [produce(connection, "t", 0, b"y" * 300_000) for _ in range(10)]
            assert offsets == [(0, offset) for offset in range(10)]
        fill(small_disk)
        getattr(node, ending)()
        fill(small_disk)
        node.start()
        assert read(node.bootstrap, 10) == list(range(10)), "nothing that was acknowledged is lost"
        with RawConnection(node.bootstrap) as connection:
            assert produce(connection, "t", 0, b"y" * 300_000)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        with Blocking(node.bootstrap) as client:
            assert client.admin.topics.delete_records("t", {0: 8}) == {0: 8}
            with RawConnection(node.bootstrap) as connection:
                until(lambda: produce(connection, "t", 0, b"y" * 300_000) == (0, 10))
            fill(small_disk)
            client.admin.topics.delete("t")
            with RawConnection(node.bootstrap) as connection:
                until(lambda: produce(connection, "u", 0, b"y" * 300_000) == (0, 0))
    finally:
        node.stop()


def test_without_its_reserve_a_full_disk_is_refused_in_one_line(small_disk: Path) -> None:
    node = OttlaNode(small_disk, properties=SINGLE_NODE).start()
    node.kill()
    (node.data_dir / ".ottla-reserve").unlink()
    errors = small_disk / "ottla.err"
    errors.write_bytes(b"")
    fill(small_disk)
    os.truncate(small_disk / "ballast", (small_disk / "ballast").stat().st_size - 4096)  # for what it says
    errors.write_bytes(b"\n")
    with pytest.raises(AssertionError):
        node.start()
    said = errors.read_text()
    assert (
        "Traceback" not in said and "No space left" in said.splitlines()[-2 if "hint" in said.splitlines()[-1] else -1]
    )


def remount(path: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(path)], check=True, capture_output=True)


def test_a_directory_that_vanishes_takes_only_its_partitions(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    with (
        EmbeddedBroker(tmp_path, {"log.dirs": f"{good},{bad}"}) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        create(connection, "t", 2)
        homes = directories(connection)
        (lost,), (kept,) = homes[str(bad)], homes[str(good)]
        shutil.rmtree(bad)
        bad.write_bytes(b"not a directory any more")
        assert produce(connection, "t", lost, b"x")[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(connection, "t", kept, b"x") == (0, 0)
        assert produce(connection, "t", lost, b"x")[0] == ErrorCode.KAFKA_STORAGE_ERROR
