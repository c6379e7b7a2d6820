"""Spark's own Kafka connector, unchanged, streams from and to a node; what it copies is what our client reads."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.spark.reading import fresh, write, write_mixture, write_transactions
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark]


def stream(spark: Any, node: OttlaNode, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": node.bootstrap, **options}
    return spark.readStream.format("kafka").options(**given).load()


def finish(writer: Any, checkpoint: Path) -> Any:
    """All that is there now."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query


def contents(node: OttlaNode, topic: str) -> Counter[Any]:
    with Blocking(node.bootstrap) as client:
        return Counter((each.key, each.value, each.headers) for each in client.read(topic))


def test_a_stream_copies_a_topic(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    source, target = fresh("connector-source"), fresh("connector-target")
    total = write_mixture(node.bootstrap, source, 3)
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(target, 2)

    def copy() -> list[int]:
        options = {"subscribe": source, "startingOffsets": "earliest", "includeHeaders": "true"}
        rows = stream(spark, node, **options, maxOffsetsPerTrigger="90").select("key", "value", "headers")
        writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", node.bootstrap)
        query = finish(writer.option("topic", target).option("includeHeaders", "true"), tmp_path / "checkpoint")
        return [each.numInputRows for each in query.recentProgress if each.numInputRows]

    batches = copy()
    assert sum(batches) == total and len(batches) >= 3
    assert contents(node, target) == contents(node, source)
    write(node.bootstrap, source, range(50), partition=2)
    assert copy() == [50]  # a restart goes on where it was
    assert contents(node, target) == contents(node, source)


def test_streams_begin_at_times_and_leave_out_what_was_aborted(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    timed, committed = fresh("connector-timed"), fresh("connector-transactions")
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(timed, 2, configs={"retention.ms": "-1"})
        for number in range(200):
            client.post(timed, b"%d" % number, partition=number % 2, timestamp=1_700_000_000_000 + number)
        client.flush()
    write_transactions(node.bootstrap, committed)
    found: list[tuple[str, str]] = []
    tasks: list[int] = []

    def take(batch: Any, batch_id: int) -> None:
        tasks.append(batch.rdd.getNumPartitions())
        found.extend((row.topic, bytes(row.value).decode()) for row in batch.collect())

    begin = {timed: {"0": 1_700_000_000_100, "1": 1_700_000_000_151}, committed: {"0": 0}}
    rows = stream(
        spark,
        node,
        subscribe=f"{timed},{committed}",
        startingOffsetsByTimestamp=json.dumps(begin),
        minPartitions="7",
        **{"kafka.isolation.level": "read_committed"},
    )
    finish(rows.writeStream.foreachBatch(take), tmp_path / "checkpoint")
    later = [number for number in range(200) if number >= (151 if number % 2 else 100)]
    expected = [(timed, str(number)) for number in later]
    expected += [(committed, f"{number}-{index}") for number in (0, 2, 4) for index in range(10)]
    assert sorted(found) == sorted(expected)
    assert len(tasks) == 1 and tasks[0] >= 7


def test_a_batch_goes_where_its_columns_say(spark: Any, node: OttlaNode) -> None:
    topics = [fresh("connector-batch") for _ in range(2)]
    with Blocking(node.bootstrap) as client:
        for name in topics:
            client.admin.topics.create(name, 3)
    rows = [(b"k%d" % i, b"v%d" % i, [("n", b"%d" % i)], topics[i % 2], i % 3) for i in range(60)]
    schema = "key binary, value binary, headers array<struct<key string, value binary>>, topic string, partition int"
    frame = spark.createDataFrame(rows, schema)
    frame.write.format("kafka").option("kafka.bootstrap.servers", node.bootstrap).option(
        "includeHeaders", "true"
    ).save()
    with Blocking(node.bootstrap) as client:
        found = [
            (each.key, each.value, list(each.headers), each.topic, each.partition)
            for name in topics
            for each in client.read(name)
        ]
    assert sorted(found) == sorted(rows)
