"""Writing to topics: the columns, errors and options of Spark's Kafka sink, without its jars."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.consumer.ranges import ReadOptions, Span
from ottla.client.producer.partitioner import partition_of_key
from ottla.records.compress import Codec

pytestmark = [pytest.mark.spark]


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any) -> None:
    from ottla.spark.source import OttlaSource

    spark.dataSource.register(OttlaSource)


def new_topic(node: OttlaNode, partitions: int = 3, **configs: str) -> str:
    name = f"out-{uuid4().hex[:8]}"
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(name, partitions, configs=configs)
    return name


def read(node: OttlaNode, topic: str) -> list[ConsumedRecord]:
    with Blocking(node.bootstrap) as client:
        return list(client.read(topic, options=ReadOptions(read_committed=True)))


def writer(frame: Any, node: OttlaNode, topic: str | None = None, **options: str) -> Any:
    made = frame.write.format("ottla").mode("append").option("kafka.bootstrap.servers", node.bootstrap)
    if topic is not None:
        made = made.option("topic", topic)
    return made.options(**{name.replace("_", "."): value for name, value in options.items()})


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_rows_arrive_with_their_keys_in_javas_partitions(spark: Any, node: OttlaNode, delivery: str) -> None:
    topic = new_topic(node)
    frame = spark.range(0, 5_000, 1, 4).selectExpr(
        "case when id % 10 = 0 then null else cast(id % 100 as string) end as key", "cast(id as string) as value"
    )
    writer(frame, node, topic, delivery=delivery).save()
    found = read(node, topic)
    assert sorted(int(each.value) for each in found if each.value) == list(range(5_000))
    for each in found:
        assert each.value is not None
        number = int(each.value)
        assert each.key == (None if number % 10 == 0 else str(number % 100).encode())
        if each.key is not None:
            assert each.partition == partition_of_key(each.key, 3)
    assert {each.partition for each in found if each.key is None} != set()


def test_binary_columns_headers_partitions_and_topics(spark: Any, node: OttlaNode) -> None:
    first, second = new_topic(node), new_topic(node)
    frame = spark.createDataFrame(
        [
            (b"k1", b"v1", [("h", b"1"), ("g", None)], first, 2),
            (None, b"v2", None, second, 0),
            (b"k3", None, [], first, None),
        ],
        "key binary, value binary, headers array<struct<key string, value binary>>, topic string, partition int",
    ).coalesce(1)
    writer(frame, node).save()
    by_value = {each.value: each for each in read(node, first)}
    assert by_value[b"v1"][:2] == (first, 2)
    assert by_value[b"v1"].headers == (("h", b"1"), ("g", None))
    assert by_value[None].key == b"k3"
    assert by_value[None].partition == partition_of_key(b"k3", 3)
    (other,) = read(node, second)
    assert (other.key, other.value, other.headers, other.partition) == (None, b"v2", (), 0)
    # The option comes before the column.
    third = new_topic(node)
    writer(frame, node, third).save()
    assert len(read(node, third)) == 3


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_codecs_and_small_batches(spark: Any, node: OttlaNode, codec: str) -> None:
    topic = new_topic(node)
    frame = spark.range(0, 2_000, 1, 1).selectExpr("cast(id as string) as value")
    writer(frame, node, topic, kafka_compression_type=codec, kafka_batch_size="2000", kafka_linger_ms="0").save()
    with Blocking(node.bootstrap) as client:
        spans = [Span(topic, partition) for partition in range(3)]
        headers = [raw.header for raw in client.iterate(client.ranges(spans).batches())]
    assert {header.codec for header in headers} == {Codec[codec.upper()]}
    assert max(header.size_bytes for header in headers) < 2_100
    assert sorted(int(each.value or b"") for each in read(node, topic)) == list(range(2_000))


def test_batches_larger_than_the_topic_takes_are_split(spark: Any, node: OttlaNode) -> None:
    topic = new_topic(node, 1, **{"max.message.bytes": "20000"})
    frame = spark.range(0, 2_000, 1, 1).selectExpr("repeat(cast(id as string), 20) as value")
    writer(frame, node, topic).save()
    assert len({each.value for each in read(node, topic)}) == 2_000


@pytest.mark.parametrize(
    ("columns", "topic", "message"),
    [
        ("'k' as key", "t", "Required attribute 'value' not found"),
        ("'v' as value", None, "topic option required when no 'topic' attribute is present"),
        ("1 as value", "t", "value attribute unsupported type int. value must be a(n) string or binary"),
        (
            "'v' as value, 1.5 as key",
            "t",
            "key attribute unsupported type decimal(2,1). key must be a(n) string",
        ),
        ("'v' as value, 7 as topic", None, "topic attribute unsupported type int. topic must be a(n) string"),
        (
            "'v' as value, '0' as partition",
            "t",
            "partition attribute unsupported type string. partition must be",
        ),
        ("'v' as value, 'h' as headers", "t", "headers attribute unsupported type string"),
        ("'v' as value, cast(null as string) as topic", None, "contains a null topic"),
        ("'v' as value, 9 as partition", "t", "Partition 9 of topic"),
        ("'v' as value, -1 as partition", "t", "Invalid partition: -1"),
    ],
)
def test_frames_that_cannot_be_written(
    spark: Any, node: OttlaNode, columns: str, topic: str | None, message: str
) -> None:
    frame = spark.range(1).selectExpr(*columns.split(", "))
    with pytest.raises(Exception) as failure:  # noqa: PT011  # which class it is depends on where Spark noticed
        writer(frame, node, new_topic(node) if topic else None).save()
    assert message in str(failure.value)
    assert "ottla/spark/sink/" not in str(failure.value), "the way through our modules tells users nothing"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("topik", "t", "did you mean 'topic'"),
        ("kafka.ack", "all", "did you mean 'kafka.acks'"),
        ("kafka.acks", "2", "one of all, -1, 0, 1"),
        ("kafka.transactional.id", "mine", "the sink makes its own"),
        ("delivery", "twice", "one of exactly_once, at_least_once"),
        ("subscribe", "t", "is for reading"),
    ],
)
def test_options_that_make_no_sense(spark: Any, node: OttlaNode, option: str, value: str, message: str) -> None:
    frame = spark.range(1).selectExpr("'v' as value")
    with pytest.raises(Exception) as failure:  # noqa: PT011
        writer(frame, node, "t").option(option, value).save()
    assert message in str(failure.value)


def test_a_numbered_batch_write_is_done_once(spark: Any, node: OttlaNode) -> None:
    topic = new_topic(node)
    frame = spark.range(0, 100, 1, 2).selectExpr("cast(id as string) as value")
    for _ in range(2):
        writer(frame, node, topic, delivery="exactly_once", sink_id=f"job-{topic}", batch_id="7").save()
    assert sorted(int(each.value or b"") for each in read(node, topic)) == list(range(100))
    writer(frame, node, topic, delivery="exactly_once", sink_id=f"job-{topic}", batch_id="8").save()
    assert len(read(node, topic)) == 200


def test_a_batch_function_that_fails_after_it_has_written(spark: Any, node: OttlaNode, tmp_path: Any) -> None:
    """foreachBatch: Spark runs a batch again whose function failed. What was written before is not written again, as
    long as every write has its own sink.id, or its own number."""
    topics = [new_topic(node) for _ in range(3)]
    (tmp_path / "in").mkdir()
    for number in range(2):
        lines = [json.dumps({"value": str(number * 10 + each)}) for each in range(10)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
    failures = [("between", 0), ("behind", 1)]

    def fail(where: str, batch_id: int) -> None:
        if (where, batch_id) in failures:
            failures.remove((where, batch_id))
            raise RuntimeError(f"failed {where} the writes")

    def each_batch(batch: Any, batch_id: int) -> None:
        def write(topic: str, sink_id: str, number: int) -> None:
            writer(batch, node, topic, delivery="exactly_once", sink_id=sink_id, batch_id=str(number)).save()

        write(topics[0], f"one-{topics[0]}", batch_id)
        fail("between", batch_id)
        write(topics[1], f"two-{topics[0]}", 2 * batch_id)
        write(topics[2], f"two-{topics[0]}", 2 * batch_id + 1)
        fail("behind", batch_id)

    rows = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    stream = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    for where in ("between", "behind"):
        with pytest.raises(Exception, match=f"failed {where} the writes"):
            stream.foreachBatch(each_batch).start().awaitTermination()
    stream.foreachBatch(each_batch).start().awaitTermination()
    for topic in topics:
        assert sorted(int(each.value or b"") for each in read(node, topic)) == list(range(20))


def test_a_thread_of_ones_own_has_to_make_the_session_its_active_one(spark: Any, node: OttlaNode) -> None:
    """Spark looks for sources written in Python in the active session of the thread."""
    topic = new_topic(node)

    def write() -> None:
        writer(spark.range(1).selectExpr("'v' as value"), node, topic).save()

    def write_as_documented() -> None:
        spark.createDataFrame([], "n int")
        write()

    with ThreadPoolExecutor(1) as own, pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
        own.submit(write).result()
    with ThreadPoolExecutor(1) as own:
        own.submit(write_as_documented).result()
    assert [each.value for each in read(node, topic)] == [b"v"]


def test_a_stream_copies_a_topic(spark: Any, node: OttlaNode, tmp_path: Any) -> None:
    topic = new_topic(node)
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [json.dumps({"value": str(number * 10 + each)}) for each in range(10)]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))
    frame = spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    for _ in range(2):  # the second time there is nothing new
        query = (
            frame.writeStream.format("ottla")
            .option("kafka.bootstrap.servers", node.bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert sorted(int(each.value or b"") for each in read(node, topic)) == list(range(30))
