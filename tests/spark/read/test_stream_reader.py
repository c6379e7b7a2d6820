"""The driver's side of a stream, call by call: one snapshot per batch, whatever happens between two calls of Spark."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.reading import fresh, offsets, write

pytest.importorskip("pyspark")

from tests.spark.readers import cut, lost, micro_batch, stream_reader, values

from ottla.client.blocking.blocking import Blocking
from ottla.spark.read.loss import Reason
from ottla.spark.read.marks import INITIAL
from ottla.spark.read.stream_reader import OttlaStreamReader
from ottla.testing.broker import EmbeddedBroker

Streams = Callable[..., OttlaStreamReader]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker(tmp_path_factory.mktemp("broker")).start()
    yield broker
    broker.stop()


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as client:
        yield client


@pytest.fixture
def streams(broker: EmbeddedBroker) -> Iterator[Streams]:
    """Makes stream readers and stops them."""
    made: list[OttlaStreamReader] = []

    def make(**options: str) -> OttlaStreamReader:
        made.append(stream_reader(broker.bootstrap, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def recreate(client: Blocking, broker: EmbeddedBroker, topic: str, numbers: range) -> None:
    client.admin.topics.delete(topic)
    write(broker.bootstrap, topic, numbers)


# --- where a query begins ---------------------------------------------------------------------------------------------


def test_a_stream_from_the_latest_begins_where_it_says(broker: EmbeddedBroker, streams: Streams) -> None:
    topic = fresh("latest")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic)
    assert reader.initialOffset() == INITIAL
    first = reader.latestOffset(INITIAL, reader.getDefaultReadLimit())
    assert offsets(first) == {topic: {"0": 10}} and reader.partitions(INITIAL, first) == []
    write(broker.bootstrap, topic, range(10, 15))
    # After a crash before the first batch was committed: that batch is still empty, and the next begins behind it.
    again = streams(subscribe=topic)
    assert again.partitions(again.initialOffset(), first) == []
    assert micro_batch(again, first)[1] == list(range(10, 15))


def test_available_now_from_the_latest_on_a_busy_topic(broker: EmbeddedBroker, streams: Streams) -> None:
    topic = fresh("busy")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic, startingOffsets="latest")
    reader.prepareForTriggerAvailableNow()
    write(broker.bootstrap, topic, range(10, 15))
    first, found = micro_batch(reader, reader.initialOffset())
    assert found == []
    write(broker.bootstrap, topic, range(15, 20))
    assert micro_batch(reader, first) == (first, [])  # the beginning is what was the latest, and so is the end


def test_some_partitions_from_the_latest_and_all_there_is_of_the_others(
    broker: EmbeddedBroker, client: Blocking, streams: Streams
) -> None:
    topic = fresh("mixed")
    client.admin.topics.create(topic, 2)
    for partition in (0, 1):
        write(broker.bootstrap, topic, range(10 * partition, 10 * partition + 10), partition)
    reader = streams(subscribe=topic, startingOffsets=f'{{"{topic}":{{"0":-1,"1":4}}}}')
    reader.prepareForTriggerAvailableNow()
    first, found = micro_batch(reader, reader.initialOffset())
    assert found == []
    write(broker.bootstrap, topic, range(20, 25))
    end, found = micro_batch(reader, first)
    assert found == list(range(14, 20)) and micro_batch(reader, end) == (end, [])


def test_times_that_nothing_is_as_late_as_begin_at_the_end(
    broker: EmbeddedBroker, client: Blocking, streams: Streams
) -> None:
    topic = fresh("timed")
    client.admin.topics.create(topic, 2, configs={"retention.ms": "-1"})
    for number in range(10):
        client.post(topic, b"%d" % number, partition=0, timestamp=1_700_000_000_000 + number)
    client.flush()
    options = {"startingTimestamp": "1700000000006", "startingOffsetsByTimestampStrategy": "latest"}
    reader = streams(subscribe=topic, **options)
    first, found = micro_batch(reader, reader.initialOffset())
    assert offsets(first) == {topic: {"0": 6, "1": 0}} and found == []
    assert micro_batch(reader, first)[1] == [6, 7, 8, 9]


def test_a_spark_that_does_not_say_where_it_is(broker: EmbeddedBroker, streams: Streams) -> None:
    """Before 4.2 `latestOffset` has no arguments; a restarted query is told by an empty range."""
    topic = fresh("silent")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic, startingOffsets="earliest")
    reached = reader.latestOffset(reader.initialOffset())
    again = streams(subscribe=topic, startingOffsets="earliest")
    assert again.partitions(reached, reached) == []
    write(broker.bootstrap, topic, range(10, 15))
    assert values(again, again.partitions(reached, again.latestOffset())) == list(range(10, 15))


def test_no_group_is_asked_where_a_query_is(broker: EmbeddedBroker, streams: Streams) -> None:
    """So it does not matter what becomes of the offsets that are committed to show its lag."""
    topic = fresh("groupless")
    write(broker.bootstrap, topic, range(10))
    reader = streams(**{"subscribe": topic, "startingOffsets": "earliest", "kafka.group.id": "shown"})
    asked = [
        broker.fail(api, error="GROUP_AUTHORIZATION_FAILED", times=None) for api in ("FindCoordinator", "OffsetFetch")
    ]
    _, found = micro_batch(reader, reader.initialOffset())
    broker.heal()
    assert found == list(range(10)) and sum(each.hits for each in asked) == 0


# --- how much at once -------------------------------------------------------------------------------------------------


def test_limits(broker: EmbeddedBroker, streams: Streams) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable

    topic = fresh("limited")
    write(broker.bootstrap, topic, range(100))

    def ends(reader: OttlaStreamReader, start: Any, limit: Any = None) -> Any:
        return offsets(reader.latestOffset(start, limit or reader.getDefaultReadLimit()))

    reader = streams(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="30", minOffsetsPerTrigger="20")
    start = reader.initialOffset()
    assert ends(reader, start) == {topic: {"0": 30}}
    nearly = {topic: {"0": 90}}
    assert ends(reader, nearly) == nearly  # 10 are too few
    assert ends(reader, nearly, ReadAllAvailable()) == {topic: {"0": 100}}
    impatient = streams(subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="20", maxTriggerDelay="0ms")
    assert ends(impatient, nearly) == {topic: {"0": 100}}
    now = streams(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="60", minOffsetsPerTrigger="50")
    now.prepareForTriggerAvailableNow()
    first = now.latestOffset(start, now.getDefaultReadLimit())
    write(broker.bootstrap, topic, range(100, 150))
    assert offsets(first) == {topic: {"0": 60}}
    end, found = micro_batch(now, first)
    assert found == list(range(60, 100))  # fewer than 50, but that is all
    assert micro_batch(now, end) == (end, [])


def test_a_batch_waits_for_enough_records_but_not_for_ever(
    broker: EmbeddedBroker, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = fresh("patient")
    write(broker.bootstrap, topic, range(10))
    now_s = 1000.0
    monkeypatch.setattr("ottla.spark.read.stream_reader.time.monotonic", lambda: now_s)
    reader = streams(subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="20", maxTriggerDelay="5m")
    start, found = micro_batch(reader, reader.initialOffset())
    assert found == list(range(10))  # the first one waits for nothing, as with the connector
    write(broker.bootstrap, topic, range(10, 20))
    now_s += 299
    assert micro_batch(reader, start) == (start, [])
    now_s += 1
    start, found = micro_batch(reader, start)
    assert found == list(range(10, 20))
    write(broker.bootstrap, topic, range(20, 40))
    assert micro_batch(reader, start)[1] == list(range(20, 40))  # enough, at once


def test_tasks_are_cut_by_size_as_far_as_sizes_are_known(broker: EmbeddedBroker, streams: Streams) -> None:
    topic = fresh("sized")
    write(broker.bootstrap, topic, range(200))
    reader = streams(subscribe=topic, startingOffsets="earliest", maxBytesPerPartition="500")
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    tasks = reader.partitions(start, end)
    assert len(tasks) > 2 and values(reader, tasks) == list(range(200))
    refused = broker.fail("DescribeLogDirs", error="CLUSTER_AUTHORIZATION_FAILED", times=None)
    (whole,) = reader.partitions(start, end)
    broker.heal()
    assert refused.hits and values(reader, [whole]) == list(range(200))


# --- topics that come and go ------------------------------------------------------------------------------------------


def test_new_partitions_and_topics(broker: EmbeddedBroker, client: Blocking, streams: Streams) -> None:
    topic = fresh("growing")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribePattern=f"{topic}.*", startingOffsets="earliest", maxOffsetsPerTrigger="1000")
    start = reader.initialOffset()
    end, found = micro_batch(reader, start)
    assert (offsets(start), offsets(end)) == ({topic: {"0": 0}}, {topic: {"0": 10}}) and len(found) == 10
    client.admin.topics.add_partitions(topic, 2)
    write(broker.bootstrap, topic, range(100, 105), partition=1)
    write(broker.bootstrap, f"{topic}-b", range(200, 203))
    more, found = micro_batch(reader, end)
    assert offsets(more) == {topic: {"0": 10, "1": 5}, f"{topic}-b": {"0": 3}} == reader.reportLatestOffset()
    assert sorted(found) == [*range(100, 105), *range(200, 203)]
    # A new partition whose beginning is gone already; the checkpoint knows, too.
    client.admin.topics.delete_records(f"{topic}-b", {0: 1})
    late = reader.latestOffset(end, reader.getDefaultReadLimit())
    assert lost(reader, lambda: reader.partitions(end, late)) is Reason.LATE_PARTITION
    restarted = streams(subscribePattern=f"{topic}.*", failOnDataLoss="false")
    assert sorted(values(restarted, restarted.partitions(end, late))) == [*range(100, 105), 201, 202]
    # A pattern may match nothing for a while.
    client.admin.topics.delete(topic)
    client.admin.topics.delete(f"{topic}-b")
    nothing, found = micro_batch(restarted, more)
    assert (nothing, found) == ({}, [])
    write(broker.bootstrap, topic, range(300, 305))
    assert micro_batch(restarted, nothing)[1] == list(range(300, 305))


def test_a_topic_made_anew_between_planning_and_reading_is_read_whole(
    broker: EmbeddedBroker, client: Blocking, streams: Streams
) -> None:
    topic = fresh("anew")
    write(broker.bootstrap, topic, range(20))
    reader = streams(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    start, found = micro_batch(reader, reader.initialOffset())
    assert found == list(range(20))
    write(broker.bootstrap, topic, range(20, 40))
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    recreate(client, broker, topic, range(100, 105))
    assert values(reader, reader.partitions(start, end)) == []  # what was planned is gone
    strict = streams(subscribe=topic)
    assert lost(strict, lambda: strict.partitions(start, end)) is Reason.RECREATED
    end, found = micro_batch(reader, end)
    write(broker.bootstrap, topic, range(105, 150))
    end, more = micro_batch(reader, end)
    assert found + more == list(range(100, 150))  # and nothing of the new topic is left out


def test_a_topic_made_anew_while_no_query_ran_is_known_by_its_id(
    broker: EmbeddedBroker, client: Blocking, streams: Streams
) -> None:
    topic = fresh("restarted")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic, startingOffsets="earliest")
    reached, _ = micro_batch(reader, reader.initialOffset())
    recreate(client, broker, topic, range(100, 130))  # longer than the old one: offsets alone tell nothing
    strict, lenient = streams(subscribe=topic), streams(subscribe=topic, failOnDataLoss="false")
    end = strict.latestOffset(reached, strict.getDefaultReadLimit())
    assert lost(strict, lambda: strict.partitions(reached, end)) is Reason.RECREATED
    # The batch that failed, run again when the loss is accepted; and again, after a crash.
    for _ in range(2):
        assert values(lenient, lenient.partitions(reached, end)) == list(range(100, 130))
    assert micro_batch(lenient, end) == (end, [])


def test_a_topic_made_anew_while_it_is_looked_at(
    broker: EmbeddedBroker, client: Blocking, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets are asked for by name: those of another topic must not get the id that was asked for before."""
    from ottla.spark.read.lookup import Lookup

    topic = fresh("changing")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    reached, _ = micro_batch(reader, reader.initialOffset())
    ask, todo = Lookup._offsets, [lambda: recreate(client, broker, topic, range(100, 130))]

    def ask_later(self: Lookup, wanted: Any) -> Any:
        if wanted and todo:
            todo.pop()()
        return ask(self, wanted)

    monkeypatch.setattr(Lookup, "_offsets", ask_later)
    end, found = micro_batch(reader, reached)
    assert not todo and found == list(range(100, 130)) and micro_batch(reader, end) == (end, [])


def test_topics_that_are_gone(broker: EmbeddedBroker, client: Blocking, streams: Streams) -> None:
    kept, topic = fresh("kept"), fresh("lost")
    write(broker.bootstrap, kept, range(5))
    write(broker.bootstrap, topic, range(10))
    both = {"subscribe": f"{kept},{topic}", "startingOffsets": "earliest"}
    strict, lenient = streams(**both), streams(**both, failOnDataLoss="false")
    reached, _ = micro_batch(strict, strict.initialOffset())
    # Spark's own connector knows no ids: offsets are all there is to go by.
    ahead = {kept: {"0": 5}, topic: {"0": 99}}
    end = strict.latestOffset(ahead, strict.getDefaultReadLimit())
    assert offsets(end) == {kept: {"0": 5}, topic: {"0": 10}}
    assert lost(strict, lambda: strict.partitions(ahead, end)) is Reason.AHEAD
    assert values(lenient, lenient.partitions(ahead, end)) == []
    client.admin.topics.delete(topic)
    left = strict.latestOffset(reached, strict.getDefaultReadLimit())
    assert offsets(left) == {kept: {"0": 5}}
    assert lost(strict, lambda: strict.partitions(reached, left)) is Reason.TOPIC_DELETED
    assert lenient.partitions(reached, left) == []
    with pytest.raises(Exception, match=f"there is no topic '{topic}'"):
        streams(subscribe=topic, startingOffsets="earliest").initialOffset()


def test_a_broker_that_knows_no_better_is_asked_again(broker: EmbeddedBroker, streams: Streams) -> None:
    topic = fresh("doubted")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic, startingOffsets="earliest")
    reached, _ = micro_batch(reader, reader.initialOffset())
    write(broker.bootstrap, topic, range(10, 15))
    unknown = broker.fail("Metadata", error="UNKNOWN_TOPIC_OR_PARTITION", times=2)
    assert micro_batch(reader, reached)[1] == list(range(10, 15)) and unknown.hits == 2


def test_the_connectors_marks_learn_ids_once(broker: EmbeddedBroker, streams: Streams) -> None:
    topic = fresh("theirs")
    write(broker.bootstrap, topic, range(10))
    reader = streams(subscribe=topic)
    theirs = {topic: {"0": 10}}
    ours, found = micro_batch(reader, theirs)
    assert offsets(ours) == theirs != ours and found == []
    assert micro_batch(reader, ours) == (ours, [])


# --- logs that lose their end -----------------------------------------------------------------------------------------


def test_what_was_read_and_is_not_there_any_more_is_known_by_the_leader_epoch(tmp_path: Path) -> None:
    broker, topic = EmbeddedBroker(tmp_path).start(), "cut"
    try:
        for first in (0, 5):
            write(broker.bootstrap, topic, range(first, first + 5))
        lenient = stream_reader(broker.bootstrap, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
        reached, found = micro_batch(lenient, lenient.initialOffset())
        assert found == list(range(10))
        assert cut(broker, topic, 5) == 5
        write(broker.bootstrap, topic, range(100, 110))  # longer than it was: offsets alone tell nothing
        strict = stream_reader(broker.bootstrap, subscribe=topic)
        end = strict.latestOffset(reached, strict.getDefaultReadLimit())
        assert lost(strict, lambda: strict.partitions(reached, end)) is Reason.TRUNCATED
        assert micro_batch(lenient, reached) == (end, list(range(100, 110)))
        assert micro_batch(lenient, end) == (end, [])
        # The same between planning and reading: nothing of what has come instead is taken for what was planned.
        write(broker.bootstrap, topic, range(110, 120))
        planned = lenient.latestOffset(end, lenient.getDefaultReadLimit())
        assert cut(broker, topic, 15) == 15
        write(broker.bootstrap, topic, range(200, 220))
        assert lost(strict, lambda: strict.partitions(end, planned)) is Reason.TRUNCATED
        assert values(lenient, lenient.partitions(end, planned)) == []
        end, found = micro_batch(lenient, planned)
        assert found == list(range(200, 220)) and micro_batch(lenient, end) == (end, [])
        strict.stop()
        lenient.stop()
    finally:
        broker.stop()
