"""Compaction beside the real cleaner: one log, compacted by Kafka and by us, must come out the same, batch by batch.

And `verify` must have nothing to say about what a real Kafka left behind: running, compacted, stopped or killed.
"""

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from tests.log.compacting import compact_now
from tests.support.java.programs import JavaServer
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import until

from ottla.log.compaction.compact import Compaction
from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.compaction.schedule import cleanable
from ottla.log.config import LogConfig
from ottla.log.files.checkpoint import CLEANER_OFFSETS, CheckpointError, read_offsets
from ottla.log.files.disk import Directory
from ottla.log.log import Log
from ottla.log.offline import dump
from ottla.log.offline.findings import Severity
from ottla.log.offline.verify import verify
from ottla.model.ids import TopicPartition
from ottla.server.ports.os_disk import OsDisk

pytestmark = [pytest.mark.compat, pytest.mark.slow]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
NAME = "cleaned-0"
CONFIG = LogConfig(segment_bytes=1 << 20, compact=True, delete=False, delete_retention_ms=100)


class Copies(NamedTuple):
    """The data directory of one broker at several times of its life."""

    before: Path
    compacted: Path
    stopped: Path
    killed: Path
    compacted_ms: int


def _write(bootstrap: str) -> None:
    rng = random.Random(5)
    for number in range(2):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t{number}", "linger.ms": 5})
        producer.init_transactions()
        for _ in range(12):
            producer.begin_transaction()
            for i in range(120):
                producer.produce("cleaned", rng.randbytes(90).hex() if i % 11 else None, b"%d" % (i % 37))
            assert producer.flush(30) == 0
            if rng.random() < 0.6:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    for codec in ("none", "lz4", "zstd", "gzip", "snappy"):
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "compression.type": codec})
        for i in range(2_500):
            producer.produce("cleaned", rng.randbytes(100).hex() if i % 13 else None, b"%d" % (i % (50 + len(codec))))
            if i % 100 == 0:
                assert producer.flush(30) == 0
        assert producer.flush(30) == 0


def _compact(kafka: RealKafka, admin: AdminClient) -> int:
    """Let Kafka clean the topic; when it did."""
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "100"}
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in settings.items()]
    for future in admin.incremental_alter_configs(
        [ConfigResource("TOPIC", "cleaned", incremental_configs=entries)]
    ).values():
        future.result()

    def cleaned() -> object:
        try:
            return read_offsets(OsDisk(str(kafka.data_dir)), CLEANER_OFFSETS)
        except CheckpointError as error:  # it is being written
            return error

    until(cleaned, lambda found: isinstance(found, dict) and TopicPartition("cleaned", 0) in found)
    return int(time.time() * 1000)


@pytest.fixture(scope="module")
def copies(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copies]:
    root = tmp_path_factory.mktemp("cleaning")
    internal = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    speed = {"log.cleaner.backoff.ms": "200", "log.segment.bytes": str(1 << 20), "log.index.size.max.bytes": "100000"}
    kafka = RealKafka(root / "kafka", properties=internal | speed)
    found = Copies(root / "before", root / "compacted", root / "stopped", root / "killed", 0)
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.create_topics([NewTopic("cleaned", 1, 1)]).values():
            future.result()
        _write(kafka.bootstrap)
        shutil.copytree(kafka.data_dir, found.before)
        found = found._replace(compacted_ms=_compact(kafka, admin))
        shutil.copytree(kafka.data_dir, found.compacted)
        kafka.stop()
        shutil.copytree(kafka.data_dir, found.stopped)
        kafka.start()
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for i in range(500):
            producer.produce("cleaned", b"more", b"%d" % i)
        assert producer.flush(30) == 0
        kafka.kill()
        shutil.copytree(kafka.data_dir, found.killed)
        yield found
    finally:
        kafka.kill()


@pytest.fixture
def ours(copies: Copies, tmp_path: Path) -> Path:
    """The log as it was before Kafka cleaned it, cleaned by us."""
    shutil.copytree(copies.before / NAME, tmp_path / NAME)
    log = Log.open(OsDisk(str(tmp_path)), NAME, CONFIG, now_ms=copies.compacted_ms)
    part = cleanable(log, None, last_stable_offset=log.next_offset, now_ms=copies.compacted_ms)
    compaction = Compaction(
        log,
        OffsetMap(1 << 24),
        first_dirty_offset=part.first_dirty_offset,
        first_uncleanable_offset=part.first_uncleanable_offset,
        now_ms=copies.compacted_ms,
    )
    assert compact_now(compaction, copies.compacted_ms)
    assert compaction.tally.bytes_written < compaction.tally.bytes_read / 10
    log.close()
    return tmp_path


def _content(root: Path) -> Iterator[tuple[Any, ...]]:
    """All there is in the segments, except what depends on the moment of cleaning."""
    directory = Directory(OsDisk(str(root)), NAME)
    for base in dump.partition_files(directory).segments:
        for batch in dump.batches(directory, base):
            assert isinstance(batch, dump.DumpedBatch) and batch.problem is None
            header = batch.header._replace(length=0, crc=0, base_timestamp=0)
            yield base, header, list(batch.records())
        yield base, dump.txn_index(directory, base)


def test_our_compaction_is_kafkas(copies: Copies, ours: Path) -> None:
    theirs = list(_content(copies.compacted))
    assert list(_content(ours)) == theirs
    assert sum(1 for entry in theirs if len(entry) == 3 and entry[1].has_delete_horizon) > 0
    assert sum(1 for entry in theirs if len(entry) == 3 and entry[1].is_control) > 0
    assert sum(1 for entry in theirs if len(entry) == 2 and entry[1]) > 0, "aborted transactions are still indexed"


def test_kafka_reads_what_we_compacted(ours: Path, java_commands: JavaServer) -> None:
    for endings, options in (
        ((".log",), ["--deep-iteration"]),
        (("index",), ["--verify-index-only"]),
        (("index",), ["--index-sanity-check"]),
    ):
        files = ",".join(str(path) for path in sorted((ours / NAME).iterdir()) if path.name.endswith(endings))
        answer = java_commands.ask({"main": DUMP, "args": [*options, "--files", files]})
        out = answer["out"] + answer["err"]
        assert answer["code"] == 0, out
        for complaint in ("isvalid: false", "Mismatches", "not found", "out of order", "corrupt", "Exception"):
            assert complaint not in out


@pytest.mark.parametrize("moment", ["before", "compacted", "stopped", "killed"])
def test_verify_passes_on_kafkas_directories(copies: Copies, moment: str) -> None:
    root: Path = getattr(copies, moment)
    found = [finding for finding in verify(OsDisk(str(root))) if finding.severity > Severity.NOTE]
    assert found == []


def test_verify_passes_on_ours(ours: Path) -> None:
    assert [finding for finding in verify(OsDisk(str(ours))) if finding.severity > Severity.NOTE] == []
