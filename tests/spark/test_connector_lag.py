"""A query of Spark's own connector, unchanged, is a consumer group with its lag; no line of code in the job for it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.node import OttlaNode
from tests.support.waiting import until

pytestmark = [pytest.mark.spark]


def groups(node: OttlaNode) -> list[dict[str, Any]]:
    return _ottla("group", "list", "--json", "-b", node.bootstrap)


def _ottla(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-m", "ottla", *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def lags(node: OttlaNode, group: str, topic: str) -> dict[int, int]:
    described = _ottla("group", "describe", group, "--json", "-b", node.bootstrap)
    return {row["partition"]: row["lag"] for row in described["partitions"] if row["topic"] == topic}


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

    def mine() -> list[str]:
        named = [each["group"] for each in groups(node) if each["group"].startswith("spark-kafka-source-")]
        return [group for group in named if lags(node, group, "lagging")]  # other tests run such queries, too

    run()
    until(lambda: len(mine()) == 1)
    (group,) = mine()
    until(lambda: lags(node, group, "lagging") == {0: 0})
    rows.limit(40).write.format("kafka").options(**broker, topic="lagging").save()
    described = _ottla("group", "describe", group, "--json", "-b", node.bootstrap)
    (row,) = described["partitions"]
    assert row["lag"] == 40
    assert row["lag_seconds"] > 0
    run()  # a restart from the checkpoint is the same group
    until(lambda: lags(node, group, "lagging") == {0: 0})
    assert mine() == [group]
