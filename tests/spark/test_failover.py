"""A cluster loses a leader under a stream that reads and writes: every row once."""

from pathlib import Path
from typing import Any

import pytest
from tests.spark.reading import write
from tests.support.processes.clusters import OttlaCluster

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.ranges import ReadOptions
from ottla.spark import register

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PARTITIONS = 3
FEW = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}


def test_a_leader_dies_under_a_stream(spark: Any, tmp_path: Path) -> None:
    register(spark)
    cluster = OttlaCluster(tmp_path / "cluster", properties=FEW)
    try:
        cluster.start()
        with Blocking(cluster.bootstrap) as client:
            for topic in ("from", "to"):
                client.admin.topics.create(topic, PARTITIONS, 3)
        query = (
            spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", cluster.bootstrap)
            .option("subscribe", "from")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "100")
            .load()
            .select("key", "value")
            .writeStream.format("ottla")
            .option("kafka.bootstrap.servers", cluster.bootstrap)
            .option("topic", "to")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        try:
            for partition in range(PARTITIONS):
                write(cluster.bootstrap, "from", range(100 * partition, 100 * (partition + 1)), partition)
            while not query.recentProgress:  # it reads, and has a few batches before it
                assert query.isActive, query.exception()
                query.awaitTermination(0.1)
            dead = cluster.leader_of("from", 0)
            cluster.kill(dead)
            for partition in range(PARTITIONS):
                write(cluster.bootstrap, "from", range(300 + 50 * partition, 300 + 50 * (partition + 1)), partition)
            query.processAllAvailable()
            cluster.start_node(dead)
            write(cluster.bootstrap, "from", range(450, 500))
            query.processAllAvailable()
        finally:
            query.stop()
        with Blocking(cluster.bootstrap) as client:
            found = [record.value for record in client.read("to", options=ReadOptions(read_committed=True))]
    finally:
        cluster.stop()
    assert sorted(int(value) for value in found if value) == list(range(500))
