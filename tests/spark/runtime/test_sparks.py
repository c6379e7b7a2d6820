"""Spark's own Kafka connector, unchanged, against a node; and Delta: what the other tests rest on."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode

pytestmark = [pytest.mark.spark]


def test_the_official_connector_writes_and_reads(spark: Any, node: OttlaNode) -> None:
    rows = spark.range(1000).selectExpr("cast(id as string) key", "cast(id * 2 as string) value")
    options = {"kafka.bootstrap.servers": node.bootstrap}
    rows.write.format("kafka").options(**options, topic="official").save()
    read = spark.read.format("kafka").options(**options, subscribe="official", includeHeaders="true").load()
    assert {(bytes(r.key), bytes(r.value)) for r in read.collect()} == {
        (str(i).encode(), str(i * 2).encode()) for i in range(1000)
    }


def test_delta_merges(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.range(10).selectExpr("id", "id * 2 as n").write.format("delta").save(path)
    spark.range(5, 15).selectExpr("id", "id * 3 as n").createOrReplaceTempView("changes")
    spark.sql(
        f"merge into delta.`{path}` t using changes c on t.id = c.id "
        "when matched then update set n = c.n when not matched then insert *"
    )
    found = {row.id: row.n for row in spark.read.format("delta").load(path).collect()}
    assert found == {i: i * 2 for i in range(5)} | {i: i * 3 for i in range(5, 15)}
