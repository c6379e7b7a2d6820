"""Typed columns through Spark: values decoded by a schema, bad records beside them or in the dead-letter topic."""

import io
import json
from typing import Any

import fastavro
import pytest
from tests.spark.reading import fresh
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark]
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "items", "type": {"type": "array", "items": "string"}},
    ],
}


def encoded(order: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, ORDER, order)
    return out.getvalue()


def test_values_by_a_schema(spark: Any, node: OttlaNode) -> None:
    topic = fresh("typed")
    with Blocking(node.bootstrap) as client:
        for number in range(30):
            who = None if number % 3 == 0 else f"w{number}"
            order = {"id": number, "who": who, "at": 1_700_000_000_000 + number, "items": ["x"] * (number % 4)}
            client.post(topic, b"\x80" if number == 7 else encoded(order), b"%d" % number)
        client.flush()

    def read(**options: str) -> Any:
        given = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "value.format": "avro"}
        return spark.read.format("ottla").options(**given, **{"value.schema": json.dumps(ORDER)}, **options).load()

    with pytest.raises(Exception, match=f"offset 7 of {topic}-0 does not decode"):
        read().collect()
    beside = read(**{"on.bad": "corrupt", "columns": "offset,value", "columns.flatten": "true"})
    assert beside.schema.simpleString().startswith(
        "struct<offset:bigint,id:bigint,who:string,at:timestamp,items:array<string>,_corrupt:struct<"
    )
    found = sorted(beside.collect(), key=lambda row: row.offset)
    assert [row.offset for row in found if row._corrupt is not None] == [7] and found[7]._corrupt.value == b"\x80"
    assert [(row.id, row.who, len(row["items"])) for row in found if row.offset != 7] == [
        (number, None if number % 3 == 0 else f"w{number}", number % 4) for number in range(30) if number != 7
    ]
    dead = {"on.bad": "dlq", "dlq.topic": f"{topic}-dead", "key.format": "string"}
    good = read(**dead).selectExpr("key", "value.id")
    assert sorted((int(row.key), row.id) for row in good.collect()) == [(n, n) for n in range(30) if n != 7]
    with Blocking(node.bootstrap) as client:
        (letter,) = client.read(f"{topic}-dead")
    assert (letter.key, letter.value, dict(letter.headers)["ottla.dlq.offset"]) == (b"7", b"\x80", b"7")
