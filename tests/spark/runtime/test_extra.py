"""`pip install 'ottla[spark,jdk]'` brings all that the data source needs: tried in an environment of its own."""

from pathlib import Path

import pytest
from tests.support.extras import make_environment
from tests.support.processes.node import OttlaNode
from tests.support.spark.sessions import Process

from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark]

PROGRAM = """
import sys
from ottla.spark import session

spark = session("extra", master="local[1]")
address = {"kafka.bootstrap.servers": sys.argv[1]}
records = spark.read.format("ottla").options(**address, subscribe="extra-in").load()
typed = records.selectExpr("topic", "int(string(value)) + 1 as number").toPandas()
print("FOUND", typed.number.tolist())
written = records.select("value").write.format("ottla").mode("append").options(**address, topic="extra-out")
written.save()
spark.stop()
"""


def test_reads_writes_and_makes_pandas(node: OttlaNode, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "environment", "spark", "jdk")
    with Blocking(node.bootstrap) as client:
        for topic in ("extra-in", "extra-out"):
            client.admin.topics.create(topic, 1)
        client.send_all("extra-in", [(None, b"1"), (None, b"2")])
        interpreters = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(python))
        environment = {**interpreters, "PYTHONPATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        process = Process([str(python), "-c", PROGRAM, node.bootstrap], tmp_path / "driver.log", environment)
        assert process.wait() == 0, process.output[-3000:]
        assert "FOUND [2, 3]" in process.output, process.output[-3000:]
        assert [record.value for record in client.read("extra-out")] == [b"1", b"2"]
