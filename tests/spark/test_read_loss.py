"""The readers without a JVM: data loss and its reasons, gaps that are none, brokers that die meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.reading import fresh, write
from tests.support.node import OttlaNode

pytest.importorskip("pyspark")

from ottla.client.blocking import Blocking
from ottla.client.fetching import Fetched
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.spark.loss import DataLoss, Reason
from ottla.spark.plan import Range
from ottla.spark.read_settings import parse_read
from ottla.spark.reader import OttlaReader, RangePartition
from ottla.spark.shape import shape_of
from ottla.spark.stream_reader import INITIAL, OttlaStreamReader
from ottla.spark.task import _Reading


@pytest.fixture
def client(node: OttlaNode) -> Iterator[Blocking]:
    with Blocking(node.bootstrap) as client:
        yield client


@pytest.fixture
def streams(node: OttlaNode) -> Iterator[Any]:
    """Makes stream readers and stops them."""
    made: list[OttlaStreamReader] = []

    def make(**options: str) -> OttlaStreamReader:
        given = {"kafka.bootstrap.servers": node.bootstrap, "fetchOffset.retryIntervalMs": "1", **options}
        settings = parse_read(given, streaming=True)
        made.append(OttlaStreamReader(settings, shape_of(settings)))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def batch_reader(bootstrap: str, **options: str) -> OttlaReader:
    settings = parse_read({"kafka.bootstrap.servers": bootstrap, **options}, streaming=False)
    return OttlaReader(settings, shape_of(settings))


def values(reader: OttlaReader | OttlaStreamReader, partitions: list[Any]) -> list[int]:
    found = [batch.column("value").to_pylist() for each in partitions for batch in reader.read(each)]
    return [int(value) for batch in found for value in batch]


def lost(reader: OttlaReader | OttlaStreamReader, partitions: Any) -> Reason:
    with pytest.raises(DataLoss) as raised:
        values(reader, partitions() if callable(partitions) else partitions)
    return raised.value.reason


def span(topic: str, start: int, end: int, topic_id: bytes = b"") -> list[RangePartition]:
    return [RangePartition(Range(TopicPartition(topic, 0), start, end, topic_id=topic_id))]


# --- tasks ------------------------------------------------------------------------------------------------------


def test_retention(client: Blocking, node: OttlaNode) -> None:
    topic = fresh("retention")
    write(node.bootstrap, topic, range(100))
    strict = batch_reader(node.bootstrap, subscribe=topic)
    planned = strict.partitions()
    client.admin.topics.delete_records(topic, {0: 40})
    assert values(strict, planned) == list(range(40, 100))  # "earliest" is wherever that is when it is read
    assert lost(strict, span(topic, 30, 60)) is Reason.RETENTION
    lenient = batch_reader(node.bootstrap, subscribe=topic, failOnDataLoss="false")
    assert values(lenient, span(topic, 30, 60)) == list(range(40, 60))
    assert values(lenient, span(topic, 10, 30)) == []


def test_ahead_deleted_recreated(client: Blocking, node: OttlaNode) -> None:
    topic = fresh("gone")
    write(node.bootstrap, topic, range(10))
    strict = batch_reader(node.bootstrap, subscribe=topic)
    lenient = batch_reader(node.bootstrap, subscribe=topic, failOnDataLoss="false")
    assert lost(strict, span(topic, 50, 60)) is Reason.AHEAD
    assert values(lenient, span(topic, 50, 60)) == []
    ended = {"subscribe": topic, "endingOffsets": f'{{"{topic}":{{"0":99}}}}'}
    assert lost(strict, lambda: batch_reader(node.bootstrap, **ended).partitions()) is Reason.AHEAD
    clipped = batch_reader(node.bootstrap, **ended, failOnDataLoss="false")
    assert values(clipped, clipped.partitions()) == list(range(10))
    old_id = client.admin.topics.describe(topic).topic_id
    gone = [RangePartition(Range(TopicPartition(topic, 3), 0, 5))]
    assert lost(strict, gone) is Reason.PARTITION_GONE
    client.admin.topics.delete(topic)
    assert lost(strict, span(topic, 0, 10)) is Reason.TOPIC_DELETED
    assert values(lenient, span(topic, 0, 10)) == []
    write(node.bootstrap, topic, range(10))
    assert lost(strict, span(topic, 0, 10, old_id)) is Reason.RECREATED
    assert values(lenient, span(topic, 0, 10, old_id)) == []


def test_a_log_shorter_than_planned(node: OttlaNode) -> None:
    topic = fresh("short")
    write(node.bootstrap, topic, range(10))
    hasty = {"kafka.fetch.max.wait.ms": "20", "kafkaConsumer.pollTimeoutMs": "50"}
    assert lost(batch_reader(node.bootstrap, subscribe=topic, **hasty), span(topic, 5, 12)) is Reason.TRUNCATED
    lenient = batch_reader(node.bootstrap, subscribe=topic, failOnDataLoss="false", **hasty)
    assert values(lenient, span(topic, 5, 12)) == [5, 6, 7, 8, 9]


def empty(reading: _Reading, high_watermark: int, last_stable_offset: int, times: int) -> None:
    """So many answers without anything, at offset 5; each is half a second in coming."""
    for _ in range(times):
        assert not reading._cursor.done
        reading._count_empty(Fetched(reading._cursor, [], 5, high_watermark, last_stable_offset))


def at_5(**options: str) -> _Reading:
    settings = parse_read({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t", **options}, streaming=False)
    reading = _Reading(settings, Range(TopicPartition("t", 0), 0, 10), "test")
    reading._cursor.position = 5
    empty(reading, 10, 10, 1)  # moved on: aborted records, say
    return reading


def test_what_compaction_removed_at_the_end_is_no_loss() -> None:
    """The broker has nothing from 5 on, and says that 10 can be read: if that stays so, the range is read."""
    reading = at_5()
    empty(reading, 10, 10, 60)
    assert reading._cursor.done
    reading = at_5(**{"kafkaConsumer.pollTimeoutMs": "2000"})
    empty(reading, 10, 10, 4)
    assert reading._cursor.done


def test_what_is_held_back_by_a_transaction_is_not_passed_over() -> None:
    reading = at_5(**{"kafka.isolation.level": "read_committed", "failOnDataLoss": "false"})
    with pytest.raises(ApiError, match="a transaction is open at 5"):
        empty(reading, 10, 5, 1_000)
    assert not reading._cursor.done


def test_a_broker_dies_and_comes_back(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path).start()
    try:
        write(node.bootstrap, "t", range(3000))
        small = {"kafka.max.partition.fetch.bytes": "2000", "rowsPerBatch": "100"}
        reader = batch_reader(node.bootstrap, subscribe="t", **small)
        planned = reader.partitions()
        batches = reader.read(planned[0])
        found = next(batches).column("value").to_pylist()
        node.kill()
        node.start()
        found += [value for batch in batches for value in batch.column("value").to_pylist()]
        assert [int(value) for value in found] == list(range(3000))
        # A task that begins while the broker is down waits for it.
        node.kill()
        late = reader.read(planned[0])
        node.start()
        assert sum(batch.num_rows for batch in late) == 3000
    finally:
        node.stop()


# --- streams ----------------------------------------------------------------------------------------------------


def test_new_partitions_and_topics(client: Blocking, node: OttlaNode, streams: Any) -> None:
    topic = fresh("growing")
    write(node.bootstrap, topic, range(10))
    reader = streams(subscribePattern=f"{topic}.*", startingOffsets="earliest", maxOffsetsPerTrigger="1000")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert (start, end) == ({topic: {"0": 0}}, {topic: {"0": 10}})
    client.admin.topics.add_partitions(topic, 2)
    write(node.bootstrap, topic, range(100, 105), partition=1)
    write(node.bootstrap, f"{topic}-b", range(200, 203))
    more = reader.latestOffset(end, reader.getDefaultReadLimit())
    assert more == {topic: {"0": 10, "1": 5}, f"{topic}-b": {"0": 3}} == reader.reportLatestOffset()
    assert sorted(values(reader, reader.partitions(end, more))) == [*range(100, 105), *range(200, 203)]
    # A new partition whose beginning is gone already.
    client.admin.topics.delete_records(f"{topic}-b", {0: 1})
    assert lost(reader, lambda: reader.partitions(end, more)) is Reason.LATE_PARTITION


def test_a_stream_from_the_latest_begins_where_it_says(node: OttlaNode, streams: Any) -> None:
    topic = fresh("latest")
    write(node.bootstrap, topic, range(10))
    reader = streams(subscribe=topic)
    assert reader.initialOffset() == INITIAL
    first = reader.latestOffset(INITIAL, reader.getDefaultReadLimit())
    assert first == {topic: {"0": 10}} and reader.partitions(INITIAL, first) == []
    write(node.bootstrap, topic, range(10, 15))
    # After a crash before the first batch was committed: that batch is still empty, and the next begins behind it.
    again = streams(subscribe=topic)
    assert again.partitions(again.initialOffset(), first) == []
    end = again.latestOffset(first, again.getDefaultReadLimit())
    assert values(again, again.partitions(first, end)) == list(range(10, 15))


def test_limits(node: OttlaNode, streams: Any) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    topic = fresh("limited")
    write(node.bootstrap, topic, range(100))
    reader = streams(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="30", minOffsetsPerTrigger="20")
    start, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    assert reader.latestOffset(start, limit) == {topic: {"0": 30}}
    nearly = {topic: {"0": 90}}
    assert reader.latestOffset(nearly, limit) == nearly  # 10 are too few
    assert reader.latestOffset(nearly, ReadAllAvailable()) == {topic: {"0": 100}}
    impatient = streams(subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="20", maxTriggerDelay="0ms")
    assert impatient.latestOffset(nearly, impatient.getDefaultReadLimit()) == {topic: {"0": 100}}
    now = streams(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="60", minOffsetsPerTrigger="50")
    now.prepareForTriggerAvailableNow()
    write(node.bootstrap, topic, range(100, 150))
    assert now.latestOffset(start, limit) == {topic: {"0": 60}}
    assert now.latestOffset({topic: {"0": 60}}, limit) == {topic: {"0": 100}}  # fewer than 50, but that is all
    assert now.latestOffset({topic: {"0": 100}}, limit) == {topic: {"0": 100}}


def test_streams_lose_topics(client: Blocking, node: OttlaNode, streams: Any) -> None:
    kept, topic = fresh("kept"), fresh("lost")
    write(node.bootstrap, kept, range(5))
    write(node.bootstrap, topic, range(10))
    strict = streams(subscribe=f"{kept},{topic}", startingOffsets="earliest")
    lenient = streams(subscribe=f"{kept},{topic}", startingOffsets="earliest", failOnDataLoss="false")
    start = {kept: {"0": 5}, topic: {"0": 10}}
    limit = strict.getDefaultReadLimit()
    assert strict.latestOffset(start, limit) == lenient.latestOffset(start, limit) == start
    # Created anew while the stream runs: known by its id.
    client.admin.topics.delete(topic)
    write(node.bootstrap, topic, range(20, 40))
    end = {kept: {"0": 5}, topic: {"0": 20}}
    assert strict.latestOffset(start, limit) == lenient.latestOffset(start, limit) == end
    assert lost(strict, lambda: strict.partitions(start, end)) is Reason.RECREATED
    assert values(lenient, lenient.partitions(start, end)) == list(range(20, 40))  # all of the new one
    # After a restart only offsets tell.
    restarted = streams(subscribe=f"{kept},{topic}")
    ahead = {kept: {"0": 5}, topic: {"0": 99}}
    assert restarted.latestOffset(ahead, limit) == end
    assert lost(restarted, lambda: restarted.partitions(ahead, end)) is Reason.AHEAD
    client.admin.topics.delete(topic)
    left = {kept: {"0": 5}}
    assert strict.latestOffset(end, limit) == left
    assert lost(restarted, lambda: restarted.partitions(end, left)) is Reason.TOPIC_DELETED
    assert lenient.partitions(end, lenient.latestOffset(end, limit)) == []
    with pytest.raises(Exception, match=f"there is no topic '{topic}'"):
        streams(subscribe=topic, startingOffsets="earliest").initialOffset()
