"""`pip install 'ottla[spark,jdk]'` brings all that Spark needs: the README's example, in an environment of its own."""

import json
import re
from pathlib import Path

import pytest
from tests.support.extras import ROOT, make_environment
from tests.support.spark.sessions import Process

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.avro.json_values import AvroValues
from ottla.schemas.framing import frame
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker

pytestmark = [pytest.mark.spark]

TIME = {"type": "long", "logicalType": "timestamp-millis"}
FIELDS = [{"name": "shop", "type": "string"}, {"name": "cents", "type": "long"}, {"name": "at", "type": TIME}]
SCHEMA = SchemaSource(json.dumps({"type": "record", "name": "Order", "fields": FIELDS}))
MINUTE_MS = 60_000
# Behind the README's lines: wait for what they wrote, and read it as a batch.
READ = """
import os

spark.streams.active[0].processAllAvailable()
read = spark.read.format("ottla").option("kafka.bootstrap.servers", os.environ["OTTLA_BOOTSTRAP"])
rows = read.option("subscribe", "revenue").load().selectExpr("string(key) shop", "string(value) value").toPandas()
print("FOUND", sorted((row.shop, row.value) for row in rows.itertuples()))
spark.stop()
"""


def readme_block(word: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    [found] = [block for block in blocks if word in block]
    return str(found)


def test_the_readmes_example(ottla_broker: EmbeddedBroker, tmp_path: Path) -> None:
    program = readme_block("ottla.spark") + READ
    assert "http://127.0.0.1:8081" in program and "/tmp/revenue" in program
    program = program.replace("http://127.0.0.1:8081", ottla_broker.registry.url)
    program = program.replace("/tmp/revenue", str(tmp_path / "checkpoint"))
    schema_id = SchemaRegistry(RegistryOptions.of(ottla_broker.registry.url)).register("orders-value", SCHEMA)
    values = AvroValues(SCHEMA)
    orders = [{"shop": f"s{minute % 2}", "cents": minute, "at": minute * MINUTE_MS} for minute in range(10)]
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create("orders", 1)
        client.send_all("orders", [(None, frame(schema_id, values.to_payload(order))) for order in orders])
    python = make_environment(tmp_path / "environment", "spark", "jdk")
    environment = {
        **dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(python)),
        "OTTLA_BOOTSTRAP": ottla_broker.bootstrap,
        "PYTHONPATH": "",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    process = Process([str(python), "-c", program], tmp_path / "driver.log", environment)
    assert process.wait() == 0, process.output[-3000:]
    assert "FOUND [('s0', " in process.output, process.output[-3000:]
