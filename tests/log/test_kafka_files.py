"""Kafka as the judge of our files, and its own files as our test: DumpLogSegments, stopped and killed brokers."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import AdminClient, NewTopic
from tests.log.logs import aborted, batch, check_indexes, offset_for_time, read_batches, read_records
from tests.support.java.programs import JavaServer
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import WAIT_S

from ottla.log.config import LogConfig
from ottla.log.files.checkpoint import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    read_meta_properties,
    read_offsets,
    read_partition_metadata,
    take_clean_shutdown,
    write_clean_shutdown,
    write_offsets,
)
from ottla.log.files.disk import Directory
from ottla.log.log import Log, Origin
from ottla.model.ids import TopicPartition
from ottla.records.compress import Codec
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.server.ports.os_disk import OsDisk

pytestmark = [pytest.mark.compat, pytest.mark.slow]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
NOW_MS = 1_700_000_000_000
RECORDS = 3_000


@pytest.fixture
def our_directory(tmp_path: Path) -> Path:
    """Several segments of every kind of batch: all codecs, idempotent, transactions committed and aborted, epochs."""
    log = Log.open(OsDisk(str(tmp_path)), "ours-0", LogConfig(segment_bytes=60_000), now_ms=NOW_MS)
    sequence = 0
    for i in range(1_500):
        made = batch(3, timestamp=NOW_MS + i // 7, producer=7, sequence=sequence, codec=Codec(i % 5), size_bytes=i % 90)
        log.append(made, leader_epoch=i // 500, now_ms=NOW_MS)
        sequence += 3
        if i % 200 == 0:
            inside = batch(producer=9, sequence=i // 200, transactional=True, timestamp=NOW_MS)
            log.append(inside, leader_epoch=i // 500, now_ms=NOW_MS)
            marker = EndTxnMarker(commit=i % 400 == 0, coordinator_epoch=1)
            end = end_txn_batch(marker, producer_id=9, producer_epoch=0, timestamp=NOW_MS)
            log.append(end, leader_epoch=i // 500, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.close()
    assert len(log.segments) > 2
    return tmp_path / "ours-0"


def dump(java_commands: JavaServer, directory: Path, endings: tuple[str, ...], *options: str) -> str:
    files = ",".join(str(path) for path in sorted(directory.iterdir()) if path.name.endswith(endings))
    answer = java_commands.ask({"main": DUMP, "args": [*options, "--files", files]})
    assert answer["code"] == 0, answer
    return str(answer["out"]) + str(answer["err"])


def test_kafka_reads_every_record_of_our_segments(our_directory: Path, java_commands: JavaServer) -> None:
    out = dump(java_commands, our_directory, (".log",), "--deep-iteration", "--print-data-log")
    assert "isvalid: false" not in out
    offsets = [int(line.split()[2]) for line in out.splitlines() if line.startswith("| offset:")]
    assert offsets == list(range(len(offsets))) and len(offsets) > 4_500


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only", "--deep-iteration"])
def test_kafka_accepts_our_indexes(our_directory: Path, java_commands: JavaServer, option: str) -> None:
    out = dump(java_commands, our_directory, ("index",), option)
    for complaint in ("Mismatches", "not found", "out of order", "corrupt", "Exception"):
        assert complaint not in out
    if option == "--index-sanity-check":
        assert out.count("passed sanity check") == 2 * len(list(our_directory.glob("*.log")))


def test_kafka_reads_our_producer_snapshots(our_directory: Path, java_commands: JavaServer) -> None:
    out = dump(java_commands, our_directory, (".snapshot",))
    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: -1" in out
    assert "firstSequence: 4497 lastSequence: 4499" in out
    assert "producerId: 9 producerEpoch: 0 coordinatorEpoch: 1 currentTxnFirstOffset: OptionalLong.empty" in out


@pytest.fixture(scope="module")
def kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """A broker of our own, because it gets stopped and killed; its topics are filled once."""
    broker = RealKafka(tmp_path_factory.mktemp("kafka"), properties={"log.segment.bytes": "1048576"})
    try:
        broker.start()
        _fill(broker.bootstrap)
        yield broker
    finally:
        broker.kill()


def _fill(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic("plain", 1), NewTopic("txn", 1)]).values():
        future.result()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
        for i in range(RECORDS // 5):
            producer.produce("plain", f"{codec} {i}".encode() * 60, b"k%d" % i, timestamp=NOW_MS + i)
        assert producer.flush(60) == 0
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    producer.init_transactions()
    for txn in range(6):
        producer.begin_transaction()
        for i in range(10):
            producer.produce("txn", b"%d %d" % (txn, i), timestamp=NOW_MS + i)
        producer.flush(60)
        if txn % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    # Markers are written after the answer; the next producer of the same id has to wait for them.
    Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"}).init_transactions()


def _open_copy(source: Path, target: Path, topic: str) -> tuple[OsDisk, Log]:
    """Open a copy of Kafka's data directory, the way the server does it."""
    shutil.copytree(source, target)
    disk = OsDisk(str(target))
    name = TopicPartition(topic, 0)
    log = Log.open(
        disk,
        f"{topic}-0",
        LogConfig(segment_bytes=1 << 20),
        now_ms=NOW_MS,
        recovery_point=read_offsets(disk, RECOVERY_POINTS).get(name, 0),
        log_start_offset=read_offsets(disk, LOG_STARTS).get(name, 0),
        clean=take_clean_shutdown(disk),
    )
    return disk, log


def _check_plain(log: Log) -> None:
    found = read_records(log)
    assert [record.offset for record in found] == list(range(RECORDS))
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        part = found[number * RECORDS // 5 : (number + 1) * RECORDS // 5]
        assert [record.value for record in part] == [f"{codec} {i}".encode() * 60 for i in range(RECORDS // 5)]
    assert offset_for_time(log, NOW_MS + 300, max_offset=log.next_offset) == (300, NOW_MS + 300, 0)
    check_indexes(log)
    states = sorted(log.producer_states(), key=lambda state: state.producer_id)
    assert [state.last_sequence for state in states] == [RECORDS // 5 - 1] * 5


def _check_txn(log: Log) -> None:
    log.producers.replicated(log.next_offset)
    assert log.next_offset == 66 and log.first_unstable_offset is None
    assert [first for _, first in aborted(log, 0, 66)] == [11, 33, 55]
    assert sum(header.is_control for header, _ in read_batches(log)) == 6
    (state,) = log.producer_states()
    assert state.txn_first_offset == -1


def test_a_running_and_a_killed_kafka(kafka: RealKafka, tmp_path: Path, java_commands: JavaServer) -> None:
    """Copied while it runs is what kill -9 leaves: indexes padded with zeros, no clean-shutdown mark."""
    kafka.kill()
    index = max((kafka.data_dir / "plain-0").glob("*.index"))
    assert index.stat().st_size == 10 << 20
    for topic, check in (("plain", _check_plain), ("txn", _check_txn)):
        _, log = _open_copy(kafka.data_dir, tmp_path / topic, topic)
        check(log)
        log.close()
        sizes = [path.stat().st_size for path in (tmp_path / topic / f"{topic}-0").glob("*index")]
        assert max(sizes) < 10 << 20
        out = dump(java_commands, tmp_path / topic / f"{topic}-0", ("index",), "--index-sanity-check")
        assert "corrupt" not in out.lower()


def test_a_stopped_kafka_and_back_again(kafka: RealKafka, tmp_path: Path) -> None:
    """A cleanly stopped Kafka's directory is served without a scan, grows here, and goes back to Kafka."""
    kafka.kill()
    kafka.start()
    kafka.stop()
    assert (kafka.data_dir / ".kafka_cleanshutdown").exists()
    disk, log = _open_copy(kafka.data_dir, tmp_path / "plain", "plain")
    assert log.recovery_point == RECORDS and log.cut_bytes == 0
    _check_plain(log)
    properties = read_meta_properties(disk)
    assert properties is not None and properties["node.id"] == "1"
    assert read_partition_metadata(Directory(disk, "plain-0")) is not None
    assert read_offsets(disk, HIGH_WATERMARKS)[TopicPartition("plain", 0)] == RECORDS
    _, txn = _open_copy(kafka.data_dir, tmp_path / "txn", "txn")
    _check_txn(txn)

    for i in range(100):
        log.append(batch(2, timestamp=NOW_MS + i, producer=12345, sequence=2 * i), leader_epoch=1, now_ms=NOW_MS)
    log.close()
    recovery_points = read_offsets(disk, RECOVERY_POINTS) | {TopicPartition("plain", 0): log.recovery_point}
    write_offsets(disk, RECOVERY_POINTS, recovery_points)
    write_clean_shutdown(disk)
    assert json.loads((tmp_path / "plain" / ".kafka_cleanshutdown").read_text())["version"] == 0
    shutil.rmtree(kafka.data_dir)
    shutil.copytree(tmp_path / "plain", kafka.data_dir)
    kafka.start()
    told = [line for line in kafka.log_path.read_text().splitlines() if "plain-0" in line]
    assert any("Loading producer state till offset 3200" in line for line in told)
    assert not any("Recovering" in line or "ERROR" in line or "WARN" in line for line in told)
    assert _consume(kafka.bootstrap) == RECORDS + 200


def _consume(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([Assigned("plain", 0, OFFSET_BEGINNING)])
    count = 0
    try:
        while count < RECORDS + 200:  # `consume` waits for all it is asked for
            messages = consumer.consume(min(500, RECORDS + 200 - count), timeout=WAIT_S)
            assert messages, f"only {count} records came"
            assert all(message.error() is None for message in messages)
            count += len(messages)
    finally:
        consumer.close()
    return count
