"""A query of Spark's own connector, unchanged, is a consumer group with its lag; no line of code in the job for it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark]


def _ottla(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-m", "ottla", *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def lags(client: Blocking) -> dict[str, int | None]:
    """By group of such queries; others read other topics."""
    names = [each.group_id for each in client.admin.groups.all() if each.group_id.startswith("spark-kafka-source-")]
    found = {name: client.admin.groups.lag(name) for name in names}
    return {name: each.records for name, those in found.items() for each in those if each.partition.topic == "lagging"}


def test_a_streaming_query_shows_as_a_group_with_lag(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    broker = {"kafka.bootstrap.servers": node.bootstrap}
    rows = spark.range(300).selectExpr("cast(id as string) value")
    rows.write.format("kafka").options(**broker, topic="lagging").save()

    def run() -> None:
        source = spark.readStream.format("kafka").options(**broker, subscribe="lagging", startingOffsets="earliest")
        query = (
            source.load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    with Blocking(node.bootstrap) as client:
        found = until(lambda: lags(client), lambda found: list(found.values()) == [0])
        rows.limit(40).write.format("kafka").options(**broker, topic="lagging").save()
        (group,) = found
        described = _ottla("group", "describe", group, "--json", "-b", node.bootstrap)
        (row,) = described["partitions"]
        assert row["lag"] == 40
        assert row["lag_seconds"] > 0
        assert group in {each["group"] for each in _ottla("group", "list", "--json", "-b", node.bootstrap)}
        run()  # a restart from the checkpoint is the same group
        until(lambda: lags(client), lambda found: found == {group: 0})
