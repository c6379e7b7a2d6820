"""The readers without a JVM, driven as Spark drives them: plan, read, and on to the next batch."""

import os
from typing import Any

import pytest

from ottla.model.ids import NO_ID, TopicPartition
from ottla.records.batch import headers
from ottla.spark.read.loss import DataLoss, Reason
from ottla.spark.read.plan import TaskRange
from ottla.spark.read.reader import OttlaReader, RangePartition
from ottla.spark.read.settings import parse_read
from ottla.spark.read.shape import shape_of
from ottla.spark.read.stream_reader import OttlaStreamReader
from ottla.testing.broker import EmbeddedBroker

Reader = OttlaReader | OttlaStreamReader


def batch_reader(bootstrap: str, **options: str) -> OttlaReader:
    given = {"kafka.bootstrap.servers": bootstrap, "fetchOffset.retryIntervalMs": "1", **options}
    settings = parse_read(given, streaming=False)
    return OttlaReader(settings, shape_of(settings))


def stream_reader(bootstrap: str, **options: str) -> OttlaStreamReader:
    given = {"kafka.bootstrap.servers": bootstrap, "fetchOffset.retryIntervalMs": "1", **options}
    settings = parse_read(given, streaming=True)
    return OttlaStreamReader(settings, shape_of(settings))


def values(reader: Reader, partitions: list[Any]) -> list[int]:
    """What the tasks of a plan read, one after the other."""
    found = [batch.column("value").to_pylist() for each in partitions for batch in reader.read(each)]
    return [int(value) for batch in found for value in batch]


def lost(reader: Reader, partitions: Any) -> Reason:
    """Why planning (if it is a function) or reading fails."""
    with pytest.raises(DataLoss) as raised:
        values(reader, partitions() if callable(partitions) else partitions)
    return raised.value.reason


def span(topic: str, start: int, end: int, topic_id: bytes = NO_ID) -> list[RangePartition]:
    return [RangePartition(TaskRange(TopicPartition(topic, 0), start, end, topic_id=topic_id))]


def micro_batch(reader: OttlaStreamReader, start: Any) -> tuple[Any, list[int]]:
    """One more micro-batch: where it ends, what it brings."""
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return end, values(reader, reader.partitions(start, end))


def cut(broker: EmbeddedBroker, topic: str, offset: int) -> int:
    """A broker that crashes, and loses the end of a log: all that reaches behind the offset. Where the log ends now."""
    broker.stop()
    (path,) = (broker.data_dir / f"{topic}-0").glob("*.log")
    kept = [(at, header) for at, header in headers(path.read_bytes()) if header.next_offset <= offset]
    at, last = kept[-1]
    os.truncate(path, at + last.size_bytes)
    (broker.data_dir / ".kafka_cleanshutdown").unlink()
    broker.restart()
    return last.next_offset
