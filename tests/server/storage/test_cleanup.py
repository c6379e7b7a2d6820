"""Retention and compaction on a live node, seen by its clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.talk import (
    BROKER,
    FETCH_VERSION,
    TOPIC,
    alter,
    create,
    delete,
    eventually,
    fetch_request,
    produce,
    whole,
)
from tests.support.requests.raw import RawConnection

from ottla.log.files import checkpoint
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.server.ports.os_disk import OsDisk
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest

Factory = Callable[..., EmbeddedBroker]
DAY_MS = 24 * 3600 * 1000
EARLIEST = -2
# Segments are small and everything that happens by the clock happens at once.
QUICK = {
    "log.retention.check.interval.ms": 100,
    "log.segment.delete.delay.ms": 100,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.min.cleanable.ratio": 0.01,
}


@pytest.fixture
def broker(ottla_broker_factory: Factory) -> EmbeddedBroker:
    return ottla_broker_factory(**QUICK)


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as connection:
        yield connection


def put(connection: RawConnection, key: bytes | None, value: bytes | None, *, timestamp: int | None = None) -> int:
    """One record in a batch of its own; its offset."""
    when = timestamp if timestamp is not None else int(time.time() * 1000)
    error, offset = produce(connection, "t", build_batch([Record(0, when, key, value, ())]))
    assert error == 0
    return offset


def log_start(connection: RawConnection) -> int:
    topic = ListOffsetsRequest.Topic
    ask = topic(name="t", partitions=[topic.Partition(partition_index=0, timestamp=EARLIEST)])
    answer: Any = connection.call(ListOffsetsRequest(replica_id=-1, topics=[ask]), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def read(connection: RawConnection) -> dict[int, tuple[bytes | None, bytes | None]]:
    """offset → key and value of every record, from the start of the log."""
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    offset = log_start(connection)
    while True:
        answer: Any = connection.call(fetch_request({("t", 0): offset}), FETCH_VERSION)
        part = answer.responses[0].partitions[0]
        assert part.error_code == 0, part
        new = {record.offset: (record.key, record.value) for record in whole(bytes(part.records))}
        if not new:
            return found
        found |= new
        offset = max(new) + 1


def clean_offset(broker: EmbeddedBroker) -> int | None:
    """Up to where the cleaner says that the log is clean."""
    offsets = checkpoint.read_offsets(OsDisk(str(broker.data_dir)), checkpoint.CLEANER_OFFSETS)
    return offsets.get(TopicPartition("t", 0))


def segment_files(broker: EmbeddedBroker) -> list[str]:
    return sorted(file.name for file in (broker.data_dir / "t-0").iterdir() if ".log" in file.name)


def test_old_segments_go(broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t", internal_segment_bytes=3_000)
    now_ms = int(time.time() * 1000)
    for number in range(10):
        put(connection, None, b"x" * 1_000, timestamp=now_ms - 2 * DAY_MS + number)
    for number in range(4):
        put(connection, None, b"y" * 1_000, timestamp=now_ms + number)
    alter(connection, TOPIC, "t", retention_ms=DAY_MS)  # only now, so that all of them go at once
    start = eventually(lambda: log_start(connection), "retention has worked")
    assert 0 < start <= 10
    eventually(lambda: not any(name.endswith(".deleted") for name in segment_files(broker)), "the files are gone")
    assert list(read(connection)) == list(range(start, 14))
    answer: Any = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_settings_that_change_reach_the_log(broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t", internal_segment_bytes=3_000)
    for _ in range(20):
        put(connection, None, b"x" * 1_000)
    time.sleep(0.3)
    assert log_start(connection) == 0
    alter(connection, TOPIC, "t", retention_bytes=6_000)
    eventually(lambda: log_start(connection) >= 12, "the topic's own setting")
    before = log_start(connection)
    alter(connection, BROKER, "", log_retention_ms=1)
    eventually(lambda: log_start(connection) == 20, "the cluster's default: all was old")
    assert before < 20
    assert put(connection, None, b"next") == 20, "offsets go on"


def test_a_log_is_compacted(broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t", internal_segment_bytes=5_000, cleanup_policy="compact", delete_retention_ms=0)
    expected: dict[bytes, bytes | None] = {}
    for number in range(120):
        key = b"k%d" % (number % 7)
        expected[key] = b"%d " % number * 50 if number % 11 else None
        put(connection, key, expected[key])
    end = put(connection, b"last", b"x" * 4_800)  # a segment of its own: everything before is closed
    offsets = {number: b"k%d" % (number % 7) for number in range(120)}

    def compacted() -> bool:
        found = read(connection)
        return len(found) <= len(expected) + 1

    eventually(compacted, "only the last values are left")
    found = read(connection)
    assert found.pop(end) == (b"last", b"x" * 4_800)
    for offset, (key, value) in found.items():
        assert key == offsets[offset], "offsets do not change"
        assert key is not None
        assert value == expected[key]
    alive = {key: value for key, value in expected.items() if value is not None}
    assert {key: value for key, value in found.values() if value is not None} == alive
    answer: Any = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    assert answer.responses[0].partitions[0].error_code == 0, "offset 0 is readable although its record is gone"
    assert put(connection, b"next", b"x") == end + 1


def test_a_compacted_log_survives_a_restart(broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t", internal_segment_bytes=5_000, cleanup_policy="compact")
    for number in range(100):
        put(connection, b"k%d" % (number % 3), b"%d " % number * 50)
    eventually(lambda: len(read(connection)) < 60, "it is compacted")
    broker.stop()
    broker.start()
    with RawConnection(broker.bootstrap) as again:
        found = read(again)
        assert {key for key, _ in found.values()} == {b"k0", b"k1", b"k2"}
        assert put(again, b"k0", b"x") == 100


def test_a_compacted_topic_made_anew_is_compacted_again(broker: EmbeddedBroker, connection: RawConnection) -> None:
    """Where the old one was clean up to must not be believed of the new one."""

    for _ in range(2):
        create(connection, "t", internal_segment_bytes=5_000, cleanup_policy="compact")
        for number in range(60):
            put(connection, b"k", b"%d " % number * 100)
        eventually(lambda: len(read(connection)) < 30, "it is compacted")
        eventually(lambda: (clean_offset(broker) or 0) > 30, "the cleaner says so")
        delete(connection, "t")
        eventually(lambda: clean_offset(broker) is None, "it is forgotten")


def test_what_takes_the_place_of_what_was_clean_is_dirty(broker: EmbeddedBroker, connection: RawConnection) -> None:
    """After an unclean election a follower gives up more than was ever uncommitted. Were its new records taken for
    clean, a deletion among them would be forgotten one day, and what it deleted be back."""
    create(connection, "t", internal_segment_bytes=5_000, cleanup_policy="compact")
    for number in range(60):
        put(connection, b"k%d" % number, b"%d " % number * 100)
    eventually(lambda: (clean_offset(broker) or 0) > 30, "it is clean")
    node, loop = broker.node, broker._thread.loop
    assert node is not None and loop is not None
    partition = node.partitions.find("t", 0)
    done = threading.Event()

    def cut() -> None:
        partition.truncate_to(10)
        node.storage.cut(partition)
        done.set()

    loop.call_soon_threadsafe(cut)
    assert done.wait(10)
    eventually(lambda: clean_offset(broker) == 10, "what comes now is dirty")


def test_a_topic_deleted_while_it_is_compacted(broker: EmbeddedBroker, connection: RawConnection) -> None:
    alter(connection, BROKER, "", log_cleaner_io_max_bytes_per_second=20_000)
    for _ in range(3):
        create(connection, "t", internal_segment_bytes=5_000, cleanup_policy="compact")
        for number in range(60):
            put(connection, b"k%d" % number, b"%d " % number * 100)
        home = broker.data_dir / "t-0"
        eventually(lambda home=home: any(home.glob("*.cleaned")), "the cleaner is at work")
        delete(connection, "t")
    assert broker.node is not None
    assert all(directory.failure is None for directory in broker.node.storage.directories)
    create(connection, "t")
    assert put(connection, b"k", b"x") == 0


def test_stamps_of_the_broker(connection: RawConnection) -> None:
    create(connection, "t", message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    put(connection, None, b"x", timestamp=5)
    answer: Any = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    (record,) = whole(bytes(answer.responses[0].partitions[0].records))
    assert record.timestamp >= before_ms
    alter(connection, TOPIC, "t", message_timestamp_type="CreateTime")
    put(connection, None, b"y", timestamp=5)
    answer = connection.call(fetch_request({("t", 0): 1}), FETCH_VERSION)
    (record,) = whole(bytes(answer.responses[0].partitions[0].records))
    assert record.timestamp == 5


def test_bounds_of_size_and_time_change_at_once(connection: RawConnection) -> None:
    create(connection, "t")
    now_ms = int(time.time() * 1000)
    late = build_batch([Record(0, now_ms - DAY_MS, None, b"x", ())])
    large = build_batch([(None, b"x" * 5_000)])
    assert produce(connection, "t", bytearray(late)) == (0, 0)
    assert produce(connection, "t", bytearray(large)) == (0, 1)
    alter(connection, TOPIC, "t", max_message_bytes=1_000, message_timestamp_before_max_ms=1_000)
    assert produce(connection, "t", bytearray(late))[0] == ErrorCode.INVALID_TIMESTAMP
    assert produce(connection, "t", bytearray(large))[0] == ErrorCode.MESSAGE_TOO_LARGE
    alter(connection, TOPIC, "t", max_message_bytes=10_000)
    assert produce(connection, "t", bytearray(large)) == (0, 2)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_the_topic_chooses_the_codec(connection: RawConnection, codec: str) -> None:
    create(connection, "t", compression_type=codec)
    assert produce(connection, "t", [b"value " * 500] * 10) == (0, 0)
    answer: Any = connection.call(fetch_request({("t", 0): 0}), FETCH_VERSION)
    data = bytes(answer.responses[0].partitions[0].records)
    assert [record.value for record in whole(data)] == [b"value " * 500] * 10
    assert (len(data) < 5_000) == (codec != "uncompressed")
