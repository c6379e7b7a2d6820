"""Reading while things happen: every row of a range once and in order, whatever becomes of requests and logs."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.reading import fresh, write
from tests.support.waiting import until

pytest.importorskip("pyspark")

from tests.spark.readers import batch_reader, cut, micro_batch, span, stream_reader

from ottla import ProducerOptions
from ottla.client.admin.configs import Change
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import RawBatch
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource, ResourceType
from ottla.records.batch import read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record
from ottla.spark.read.loss import DataLoss, Reason
from ottla.spark.read.rows import Rows
from ottla.testing.broker import EmbeddedBroker

# Many small answers and many small Arrow batches, so that things happen in the middle.
SMALL = {"kafka.max.partition.fetch.bytes": "2000", "rowsPerBatch": "100"}
TRUE_FALSE = ("true", "false")
QUICK = {"log.cleaner.backoff.ms": 50, "log.cleaner.min.cleanable.ratio": 0.01}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    broker = EmbeddedBroker(tmp_path_factory.mktemp("broker"), QUICK).start()
    yield broker
    broker.stop()


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as client:
        yield client
    broker.heal()


def write_batches(client: Blocking, topic: str, size: int) -> None:
    """Numbers, in batches of 50."""
    for number in range(size):
        client.post(topic, b"%d" % number, partition=0)
        if number % 50 == 49:
            client.flush()


def numbers(batch: Any) -> list[int]:
    return [int(value) for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize(
    "faults",
    [
        [{"api": "Fetch", "close": True}],
        [{"api": "Fetch", "close": True, "after": True}],
        [{"api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER"}, {"api": "Metadata", "close": True}],
        [{"api": "Fetch", "error": "UNKNOWN_TOPIC_ID"}, {"api": "Metadata", "error": "LEADER_NOT_AVAILABLE"}],
        [{"api": "Fetch", "error": "OFFSET_OUT_OF_RANGE"}, {"api": "ListOffsets", "close": True}],
        [{"api": "Fetch", "error": "OFFSET_OUT_OF_RANGE"}, {"api": "ListOffsets", "error": "NOT_LEADER_OR_FOLLOWER"}],
    ],
    ids=lambda faults: "-".join(f"{each['api']}-{each.get('error', 'close')}" for each in faults),
)
def test_a_read_that_is_tried_again_skips_and_repeats_nothing(
    broker: EmbeddedBroker, client: Blocking, faults: list[dict[str, Any]]
) -> None:
    topic = fresh("again")
    write_batches(client, topic, 1000)
    reader = batch_reader(broker.bootstrap, subscribe=topic, **SMALL)
    (planned,) = reader.partitions()
    found: list[int] = []
    made = []
    for batch in reader.read(planned):
        found += numbers(batch)
        made += [broker.fail(**each) for each in faults]  # again after every one
    broker.heal()
    assert found == list(range(1000)) and sum(each.hits for each in made) >= 2 * len(faults)


def test_two_tasks_that_read_the_same_range_read_the_same(broker: EmbeddedBroker, client: Blocking) -> None:
    """Speculation, and a task that is run again: reading moves nothing but its own position."""
    topic = fresh("twice")
    write_batches(client, topic, 500)
    reader = batch_reader(broker.bootstrap, subscribe=topic, **SMALL)
    (planned,) = reader.partitions()
    abandoned, one, two = (reader.read(planned) for _ in range(3))
    next(abandoned)
    abandoned.close()  # type: ignore[attr-defined]
    rows: tuple[list[int], list[int]] = ([], [])
    for batches in zip(one, two, strict=True):
        for found, batch in zip(rows, batches, strict=True):
            found += numbers(batch)
    assert rows[0] == rows[1] == list(range(500))


def test_records_that_are_deleted_while_they_are_read(broker: EmbeddedBroker, client: Blocking) -> None:
    topic = fresh("deleting")
    write_batches(client, topic, 1000)
    strict = batch_reader(broker.bootstrap, subscribe=topic, **SMALL)
    lenient = batch_reader(broker.bootstrap, subscribe=topic, failOnDataLoss="false", **SMALL)
    readings = [iter(each.read(each.partitions()[0])) for each in (strict, lenient)]
    found = [numbers(next(each)) for each in readings]
    client.admin.topics.delete_records(topic, {0: 900})
    rest: list[int] = []
    for batch in readings[1]:
        rest += numbers(batch)
    # What was fetched already is still handed out, then it goes on where the log begins now.
    at_once = len(rest) - 100
    assert rest == [*range(len(found[1]), len(found[1]) + at_once), *range(900, 1000)] and at_once < 500
    with pytest.raises(DataLoss) as raised:
        list(readings[0])
    assert raised.value.reason is Reason.RETENTION


@pytest.mark.parametrize("what", ["deleted", "recreated", "cut before", "cut behind"])
def test_nothing_else_is_read_in_place_of_what_was_planned(tmp_path: Path, what: str) -> None:
    """The topic goes, or the log loses its end and gets another one, in the middle of a read."""
    broker = EmbeddedBroker(tmp_path).start()
    try:
        with Blocking(broker.bootstrap) as client:
            write_batches(client, "t", 1000)
        readers = [batch_reader(broker.bootstrap, subscribe="t", failOnDataLoss=fail, **SMALL) for fail in TRUE_FALSE]
        readings = [iter(each.read(each.partitions()[0])) for each in readers]
        found = [numbers(next(each)) for each in readings]
        if what in ("deleted", "recreated"):
            with Blocking(broker.bootstrap) as client:
                client.admin.topics.delete("t")
        else:
            end = cut(broker, "t", 100 if what == "cut before" else 750)
        if what != "deleted":
            write(broker.bootstrap, "t", range(5000, 7000))
        rest = [number for batch in readings[1] for number in numbers(batch)]
        assert rest == list(range(len(found[1]), len(found[1]) + len(rest))) and len(rest) < 900
        assert what != "cut behind" or rest[-1] == end - 1 > 500
        with pytest.raises(DataLoss) as raised:
            list(readings[0])
        reasons = {"deleted": Reason.TOPIC_DELETED, "recreated": Reason.RECREATED}
        assert raised.value.reason is reasons.get(what, Reason.TRUNCATED)
    finally:
        broker.stop()


def test_offsets_that_compaction_removed_are_no_loss(broker: EmbeddedBroker, client: Blocking) -> None:
    topic = fresh("compacted")
    small = {"cleanup.policy": "compact", "internal.segment.bytes": "5000", "delete.retention.ms": "0"}
    client.admin.topics.create(topic, 1, configs=small)
    for number in range(120):
        client.send(topic, b"%03d" % number + b"x" * 200, b"k%d" % (number % 3 if number < 90 else 3))
    client.send(topic, b"%d" % 120 + b"x" * 4900, b"last")  # a segment of its own: all before it is compacted

    def there() -> list[int]:
        return [record.offset for record in client.read(topic)]

    left = until(there, lambda found: found == [87, 88, 89, 119, 120])
    reader = batch_reader(broker.bootstrap, subscribe=topic, columns="offset")

    def read(start: int, end: int) -> list[int]:
        return [
            offset for each in span(topic, start, end) for batch in reader.read(each) for offset in batch[0].to_pylist()
        ]

    assert read(0, 121) == left
    assert read(0, 88) == [87] and read(0, 50) == [] and read(90, 119) == [] and read(89, 119) == [89]
    assert [offset for each in range(0, 121, 10) for offset in read(each, min(each + 10, 121))] == left
    # A stream whose batches have nothing in them goes on.
    stream = stream_reader(broker.bootstrap, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="40")
    at, rows = stream.initialOffset(), 0
    for _ in range(4):
        end = stream.latestOffset(at, stream.getDefaultReadLimit())
        rows += sum(batch.num_rows for each in stream.partitions(at, end) for batch in stream.read(each))
        at = end
    stream.stop()
    assert rows == len(left)


def test_gaps_up_to_the_end_of_what_can_be_read_are_proved_at_once(broker: EmbeddedBroker, client: Blocking) -> None:
    """Compaction has removed the last records before an open transaction; and a log ends with a marker."""
    topic, name = fresh("tail"), fresh("writer")
    client.admin.topics.create(topic, 1, configs={"internal.segment.bytes": "5000"})
    for number in range(40):
        client.send(topic, b"%d" % number, partition=0)  # without keys, so compaction removes all of them
    client.admin.configs.alter(Resource(ResourceType.TOPIC, topic), [Change("cleanup.policy", "compact")])
    hasty = {"kafkaConsumer.pollTimeoutMs": "1000", "kafka.fetch.max.wait.ms": "50"}
    for_all, for_committed = (
        batch_reader(broker.bootstrap, subscribe=topic, columns="offset", **hasty, **{"kafka.isolation.level": level})
        for level in ("read_uncommitted", "read_committed")
    )

    def read(reader: Any, end: int) -> list[int]:
        return [
            offset for each in span(topic, 0, end) for batch in reader.read(each) for offset in batch[0].to_pylist()
        ]

    with Blocking(broker.bootstrap, ProducerOptions(transactional_id=name)) as writer:
        with writer.transaction():
            writer.send(topic, b"x" * 4900, b"last", partition=0)  # a segment of its own: all before it is compacted
            until(lambda: read(for_all, 41), lambda found: found == [40])
            assert read(for_committed, 40) == read(for_all, 40) == []
        assert read(for_committed, 42) == read(for_all, 42) == [40], "41 is the marker"


def test_the_broker_is_away_while_a_batch_is_planned(broker: EmbeddedBroker, client: Blocking) -> None:
    topic = fresh("away")
    write(broker.bootstrap, topic, range(10))
    stream = stream_reader(broker.bootstrap, subscribe=topic, startingOffsets="earliest")
    start = stream.initialOffset()
    faults = [broker.fail(api, close=True, times=2) for api in ("Metadata", "ListOffsets")]
    faults.append(broker.fail("ListOffsets", error="LEADER_NOT_AVAILABLE", times=2))
    end, found = micro_batch(stream, start)
    assert found == list(range(10)) and all(each.hits == 2 for each in faults)
    write(broker.bootstrap, topic, range(10, 20))
    broker._stop_node()
    back = threading.Timer(0.5, broker.restart)
    back.start()
    try:
        end, found = micro_batch(stream, end)
    finally:
        back.join()
        stream.stop()
    assert found == list(range(10, 20))


def test_a_partition_without_a_leader_is_named_when_patience_ends(broker: EmbeddedBroker, client: Blocking) -> None:
    topic = fresh("leaderless")
    write(broker.bootstrap, topic, range(10))
    hasty = {"kafka.default.api.timeout.ms": "300", "kafka.request.timeout.ms": "300"}
    stream = stream_reader(broker.bootstrap, subscribe=topic, startingOffsets="earliest", **hasty)
    start = stream.initialOffset()
    broker.fail("ListOffsets", error="LEADER_NOT_AVAILABLE", times=None)
    with pytest.raises(ApiError, match=rf"{topic}-0"):
        stream.latestOffset(start, stream.getDefaultReadLimit())
    broker.heal()
    assert micro_batch(stream, start)[1] == list(range(10))  # a moment later it is
    stream.stop()


@pytest.mark.parametrize(
    ("record", "codec", "broken", "message"),
    [
        (Record(7, 2**62, None, b"1", ()), Codec.NONE, None, "record at offset 7 of t-3 has a timestamp that Spark"),
        (Record(7, 0, None, b"1", ()), Codec.NONE, -1, "t-3, offsets 7 to 7: A record batch holds malformed records"),
        (Record(7, 0, None, b"1", ()), Codec.GZIP, -1, "t-3, offsets 7 to 7: "),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(
    record: Record, codec: Codec, broken: int | None, message: str
) -> None:
    data = build_batch([record], base_offset=7, codec=codec)
    if broken is not None:
        data = data[:broken]
        data[8:12] = (len(data) - 12).to_bytes(4, "big")
    rows = Rows("t", 3, ("value", "timestamp"), 1)
    raw = RawBatch(TopicPartition("t", 3), read_header(data), memoryview(data), 7, 8)
    with pytest.raises(ApiError, match=message):
        list(rows.add([raw]))
