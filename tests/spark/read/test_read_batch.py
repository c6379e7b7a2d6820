"""Batch reads with the source `ottla`: row by row what Spark's own connector reads, from a node and a real Kafka."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from tests.spark.reading import frame, fresh, rows, write, write_mixture, write_transactions
from tests.support.processes.node import OttlaNode
from tests.support.waiting import until

pytest.importorskip("pyspark")

from tests.spark.readers import micro_batch, stream_reader

from ottla.client.blocking.blocking import Blocking
from ottla.spark import register

pytestmark = [pytest.mark.spark]


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)], scope="module")
def bootstrap(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("node" if request.param == "ottla" else "real_kafka").bootstrap)


def same(spark: Any, bootstrap: str, options: Mapping[str, str]) -> list[Any]:
    """What both sources read; it must be equal, schema included (but ours says what is never null)."""
    theirs, ours = frame(spark, "kafka", bootstrap, options), frame(spark, "ottla", bootstrap, options)
    assert ours.schema._as_nullable() == theirs.schema
    nullable = {field.name for field in ours.schema if field.nullable}
    assert nullable == {"key", "value", "headers"} & set(ours.columns)
    found = rows(ours)
    assert found == rows(theirs)
    return found


def test_all_columns_all_codecs(spark: Any, bootstrap: str) -> None:
    topic = fresh("mixture")
    total = write_mixture(bootstrap, topic)
    found = same(spark, bootstrap, {"subscribe": topic, "includeHeaders": "true"})
    assert len(found) == total and any(row.headers for row in found) and any(row.value is None for row in found)
    # Without headers; and beside it a topic whose times are the broker's.
    stamped = fresh("stamped")
    with Blocking(bootstrap) as client:
        client.admin.topics.create(stamped, 1, configs={"message.timestamp.type": "LogAppendTime"})
    write(bootstrap, stamped, range(20))
    both = same(spark, bootstrap, {"subscribe": f"{topic},{stamped}"})
    assert both[0].asDict().keys() == set(found[0].asDict()) - {"headers"} and len(both) == total + 20
    assert {row.timestampType for row in both if row.topic == stamped} == {1}
    assert {row.timestampType for row in both if row.topic == topic} == {0}


def test_offsets_times_and_strategies(spark: Any, bootstrap: str) -> None:
    topic = fresh("limits")
    write_mixture(bootstrap, topic)

    def offsets(zero: int, one: int) -> str:
        return json.dumps({topic: {"0": zero, "1": one}})

    def read(**options: str) -> list[Any]:
        return same(spark, bootstrap, {"subscribe": topic, **options})

    assert len(read(startingOffsets=offsets(10, -2), endingOffsets=offsets(12, 5))) == 2 + 5
    assert len(read(startingOffsets=offsets(-2, 99), endingOffsets=offsets(-1, -1))) == 100 + 1
    # Times: batches of all codecs begin at the same time again, so the first that is late enough is in the first batch.
    assert len(read(startingOffsetsByTimestamp=offsets(1_700_000_010_000, 1_700_000_020_000))) == 95 + 90
    assert len(read(startingTimestamp="1700000010000", endingTimestamp="1700000020000")) == 10
    late = {"startingTimestamp": "1800000000000", "startingOffsetsByTimestampStrategy": "latest"}
    assert read(**late) == []
    assert (
        len(same(spark, bootstrap, {"assign": json.dumps({topic: [1]}), "endingOffsets": f'{{"{topic}":{{"1":9}}}}'}))
        == 9
    )
    for pattern in (f"^{topic[:-1]}[{topic[-1]}]$|^nothing$", f"{topic[1:]}$"):  # found anywhere in the name
        assert same(spark, bootstrap, {"subscribePattern": pattern}) == read()
    ours = frame(spark, "ottla", bootstrap, {"subscribe": topic, "startingTimestamp": "1800000000000"})
    with pytest.raises(Exception, match=r"nothing in limits-.* is as late as timestamp 1800000000000"):
        ours.collect()


def test_transactions(spark: Any, bootstrap: str) -> None:
    topic = fresh("transactions")
    write_transactions(bootstrap, topic)
    assert len(same(spark, bootstrap, {"subscribe": topic})) == 60
    committed = same(spark, bootstrap, {"subscribe": topic, "kafka.isolation.level": "read_committed"})
    assert [row.value[:1] for row in committed] == [b"0"] * 10 + [b"2"] * 10 + [b"4"] * 10
    # A range that ends with markers and aborted records, and one that has nothing else.
    part = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    for start, end in ((5, 22), (11, 22)):
        given = {"startingOffsets": f'{{"{topic}":{{"0":{start}}}}}', "endingOffsets": f'{{"{topic}":{{"0":{end}}}}}'}
        assert len(same(spark, bootstrap, {**part, **given})) == max(10 - start, 0)


def test_a_stream_knows_a_topic_by_its_id(bootstrap: str) -> None:
    """Not a batch, and without Spark; but here a real Kafka runs."""
    topic = fresh("known")
    reader = stream_reader(bootstrap, subscribe=topic, startingOffsets="earliest", failOnDataLoss="false")
    with Blocking(bootstrap) as client:
        client.admin.topics.create(topic, 1)
        write(bootstrap, topic, range(10))
        reached, found = micro_batch(reader, reader.initialOffset())
        assert found == list(range(10))
        client.admin.topics.delete(topic)
        until(lambda: [each.name for each in client.admin.topics.all()], lambda names: topic not in names)
        client.admin.topics.create(topic, 1)
        write(bootstrap, topic, range(100, 130))
    end, found = micro_batch(reader, reached)
    assert found == list(range(100, 130)) and micro_batch(reader, end) == (end, [])
    reader.stop()


def test_tasks_are_split(spark: Any, node: OttlaNode) -> None:
    topic = fresh("split")
    total = write_mixture(node.bootstrap, topic)

    def tasks(kind: str, **options: str) -> int:
        found = frame(spark, kind, node.bootstrap, {"subscribe": topic, **options})
        assert found.count() == total
        return int(found.rdd.getNumPartitions())

    assert tasks("ottla") == tasks("kafka") == 2
    assert tasks("ottla", minPartitions="7") == tasks("kafka", minPartitions="7") == 8
    assert tasks("ottla", maxRecordsPerPartition="30") == 8
    assert tasks("ottla", maxBytesPerPartition="1000") > 2


def test_chosen_columns(spark: Any, node: OttlaNode) -> None:
    topic = fresh("columns")
    write_mixture(node.bootstrap, topic)
    options = {"subscribe": topic, "includeHeaders": "true"}
    whole = rows(frame(spark, "ottla", node.bootstrap, options))
    for columns in ("topic,partition,offset,key", "headers,offset,partition,topic"):
        names = columns.split(",")
        found = frame(spark, "ottla", node.bootstrap, {**options, "columns": columns})
        assert found.columns == names
        assert [tuple(row) for row in rows(found)] == [tuple(row[name] for name in names) for row in whole]


def test_filters_are_taken_over(spark: Any, node: OttlaNode) -> None:
    topic = fresh("filters")
    write_mixture(node.bootstrap, topic)
    options = {"subscribe": topic, "filterPushdown": "true"}
    whole = rows(frame(spark, "ottla", node.bootstrap, {"subscribe": topic}))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        ours = frame(spark, "ottla", node.bootstrap, options)
        found = ours.where("partition = 1 and offset >= 10 and offset < 30 and length(value) > 6")
        assert rows(found) == [
            row for row in whole if row.partition == 1 and 10 <= row.offset < 30 and len(row.value or b"") > 6
        ]
        late = ours.where("timestamp >= timestamp'2023-11-14 22:13:50'")
        assert rows(late) == [row for row in whole if row.timestamp >= datetime(2023, 11, 14, 22, 13, 50)]
        assert ours.where("partition in (0, 1) and topic = 'another'").count() == 0
        assert ours.where("partition = 0 and offset = 7").rdd.getNumPartitions() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_errors_come_before_anything_runs(spark: Any, node: OttlaNode) -> None:
    with pytest.raises(Exception, match="unknown option 'startingoffset': did you mean 'startingOffsets'"):
        frame(spark, "ottla", node.bootstrap, {"subscribe": "t", "startingOffset": "earliest"})
    topic = fresh("there")
    write(node.bootstrap, topic, range(3))
    with pytest.raises(Exception, match=f"there is no topic '{topic}s': did you mean '{topic}'"):
        frame(spark, "ottla", node.bootstrap, {"subscribe": f"{topic}s"}).collect()
    with pytest.raises(Exception, match=f"there is no partition {topic}-9"):
        frame(spark, "ottla", node.bootstrap, {"assign": json.dumps({topic: [9]})}).collect()
    with pytest.raises(Exception, match=f"must name all partitions .*not named: {topic}-0; not assigned: {topic}-1"):
        frame(
            spark, "ottla", node.bootstrap, {"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"1":0}}}}'}
        ).collect()
    given = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic}
    theirs = frame(spark, "kafka", node.bootstrap, {"subscribe": topic}).schema
    assert spark.read.schema(theirs).format("ottla").options(**given).load().count() == 3
    with pytest.raises(Exception, match="fixed schema"):
        spark.read.schema("a int").format("ottla").options(**given).load().collect()
    with pytest.raises(Exception, match=r"no connection to 127\.0\.0\.1:1"):
        frame(spark, "ottla", "127.0.0.1:1", {"subscribe": topic}).collect()


def test_it_is_found_and_can_be_registered(spark: Any, node: OttlaNode) -> None:
    topic = fresh("registered")
    write(node.bootstrap, topic, range(3))
    assert frame(spark, "ottla", node.bootstrap, {"subscribe": topic}).count() == 3  # nobody told Spark of it
    assert register(spark) and register()
    assert frame(spark, "OTTLA", node.bootstrap, {"subscribe": topic}).count() == 3


def test_a_wide_topic(spark: Any, node: OttlaNode) -> None:
    topic = fresh("wide")
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(topic, 40)
        for index in range(40):
            client.post(topic, b"v", partition=index)
        client.flush()
    found = rows(frame(spark, "ottla", node.bootstrap, {"subscribe": topic}))
    assert [row.partition for row in found] == list(range(40))
