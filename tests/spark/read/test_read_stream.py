"""Streams with the source `ottla`: batch by batch what Spark's own connector does, restarts and loss included."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.spark.reading import fresh, offsets, write
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark]


def run(spark: Any, kind: str, bootstrap: str, directory: Path, **options: str) -> tuple[list[int], list[Any]]:
    """Copy all that is there now to files: the values so far, and the source's reports of this run's batches."""
    given = {"kafka.bootstrap.servers": bootstrap, "startingOffsets": "earliest", **options}
    stream = spark.readStream.format(kind).options(**given).load().selectExpr("cast(value as string) value")
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(directory / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(directory / "rows"))
    query.awaitTermination(120)
    reports = [json.loads(each.json)["sources"][0] for each in query.recentProgress]
    return sorted(int(row.value) for row in spark.read.parquet(str(directory / "rows")).collect()), reports


def ends(reports: list[Any]) -> list[Any]:
    return [offsets(each["endOffset"]) for each in reports]


def test_batches_are_the_connectors_and_so_are_checkpoints(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    topic = fresh("stream")
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(topic, 2)
    write(node.bootstrap, topic, range(70))
    write(node.bootstrap, topic, range(70, 100), partition=1)
    options = {"subscribe": topic, "maxOffsetsPerTrigger": "40"}
    theirs, their_reports = run(spark, "kafka", node.bootstrap, tmp_path / "kafka", **options)
    ours, our_reports = run(spark, "ottla", node.bootstrap, tmp_path / "ottla", **options)
    assert ours == theirs == list(range(100))
    assert ends(our_reports) == ends(their_reports) and len(our_reports) == 3
    assert our_reports[0]["latestOffset"] == ends(our_reports)[-1] == {topic: {"0": 70, "1": 30}}
    # More records, a new partition; and each continues the checkpoint of the other.
    with Blocking(node.bootstrap) as client:
        client.admin.topics.add_partitions(topic, 3)
    write(node.bootstrap, topic, range(100, 110), partition=2)
    for kind, checkpoint in (("ottla", "kafka"), ("kafka", "ottla")):
        found, reports = run(spark, kind, node.bootstrap, tmp_path / checkpoint, **options)
        assert found == list(range(110)) and ends(reports)[-1] == {topic: {"0": 70, "1": 30, "2": 10}}


def test_a_checkpoint_goes_to_and_fro_between_the_sources_under_load(
    spark: Any, node: OttlaNode, tmp_path: Path
) -> None:
    topic = fresh("load")
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(topic, 3)
    enough, written = threading.Event(), 0

    def produce() -> None:
        nonlocal written
        with Blocking(node.bootstrap) as client:
            while not enough.wait(0.02):
                for _ in range(50):
                    client.post(topic, b"%d" % written, partition=written % 3)
                    written += 1
                client.flush()

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        for kind in ("kafka", "ottla", "kafka"):
            run(spark, kind, node.bootstrap, tmp_path, subscribe=topic)
        run(spark, "ottla", node.bootstrap, tmp_path / "late", subscribe=topic, startingOffsets="latest")
    finally:
        enough.set()
        producer.join()
    found, _ = run(spark, "ottla", node.bootstrap, tmp_path, subscribe=topic)
    assert written > 0 and found == list(range(written))  # every record, once


def test_loss_ends_the_query_with_its_reason(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    topic = fresh("losing")
    write(node.bootstrap, topic, range(50))
    assert run(spark, "ottla", node.bootstrap, tmp_path, subscribe=topic)[0] == list(range(50))
    with Blocking(node.bootstrap) as client:
        write(node.bootstrap, topic, range(50, 80))
        client.admin.topics.delete_records(topic, {0: 60})
    with pytest.raises(Exception, match=r"data loss \(retention\): offsets 50 to 59 of losing-.* are gone"):
        run(spark, "ottla", node.bootstrap, tmp_path, subscribe=topic)
    found, _ = run(spark, "ottla", node.bootstrap, tmp_path, subscribe=topic, failOnDataLoss="false")
    assert found == [*range(50), *range(60, 80)]
    # Made anew while no query runs, and longer than before: the checkpoint knows its id.
    with Blocking(node.bootstrap) as client:
        client.admin.topics.delete(topic)
    write(node.bootstrap, topic, range(100, 200))
    with pytest.raises(Exception, match=r"data loss \(recreated\): what was not read of topic 'losing-.*' is gone"):
        run(spark, "ottla", node.bootstrap, tmp_path, subscribe=topic)
    found, _ = run(spark, "ottla", node.bootstrap, tmp_path, subscribe=topic, failOnDataLoss="false")
    assert found == [*range(50), *range(60, 80), *range(100, 200)]


def test_two_queries_on_one_checkpoint(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    """Spark sees to it that there is one: in a session the second stops the first, and goes on where that one was."""
    topic = fresh("shared")
    write(node.bootstrap, topic, range(50))

    def start() -> Any:
        given = {"kafka.bootstrap.servers": node.bootstrap, "startingOffsets": "earliest", "subscribe": topic}
        stream = spark.readStream.format("ottla").options(**given).load().selectExpr("cast(value as string) value")
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.start(str(tmp_path / "rows"))

    first = start()
    first.processAllAvailable()
    second = start()
    try:
        assert not first.isActive and first.exception() is None
        write(node.bootstrap, topic, range(50, 60))
        second.processAllAvailable()
    finally:
        second.stop()
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert sorted(int(row.value) for row in rows) == list(range(60))
