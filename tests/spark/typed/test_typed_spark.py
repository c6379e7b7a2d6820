"""Typed columns in a real Spark: equal to those of Spark's own from_avro, and read back as they were written."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from tests.columns.avro.cases import encoded
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.schemas.framing import schema_mark
from ottla.schemas.schema import SchemaSource
from ottla.testing.registry import Registry

pytestmark = [pytest.mark.spark]

FIELDS: dict[str, Any] = {
    "id": "long",
    "small": "int",
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
    "weight": "float",
    "ok": "boolean",
    "name": "string",
    "raw": {"type": "fixed", "name": "Raw", "size": 2},
    "kind": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
    "day": {"type": "int", "logicalType": "date"},
    "at": {"type": "long", "logicalType": "timestamp-millis"},
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "note": ["null", "string"],
    "wide": ["int", "long"],
    "either": ["null", "int", "string"],
    "tags": {"type": "array", "items": ["null", "string"]},
    "counts": {"type": "map", "values": "long"},
    "inner": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "double"}]}],
}
SCHEMA = {"type": "record", "name": "Rich", "fields": [{"name": key, "type": each} for key, each in FIELDS.items()]}


def row(number: int) -> dict[str, Any]:
    moment = dt.datetime(1960, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=number, milliseconds=number)
    return {
        "id": number * 10**12,
        "small": -number,
        "price": Decimal(number - 50).scaleb(-3),
        "weight": number / 4,
        "ok": number % 2 == 0,
        "name": f"näme {number}",
        "raw": bytes([number % 256, 1]),
        "kind": "AB"[number % 2],
        "day": moment.date(),
        "at": moment,
        "local": moment.replace(tzinfo=None),
        "note": None if number % 3 else f"n{number}",
        "wide": number if number % 2 else number * 10**10,
        "either": [None, number, f"e{number}"][number % 3],
        "tags": [None if each % 2 else f"t{each}" for each in range(number % 5)],
        "counts": {f"k{each}": each for each in range(number % 4)},
        "inner": None if number % 4 == 0 else {"x": number / 8},
    }


@pytest.fixture(scope="module", autouse=True)
def registered(spark: Any) -> None:
    from ottla.spark.source import OttlaSource

    spark.dataSource.register(OttlaSource)


@pytest.fixture(scope="module")
def url(node: OttlaNode) -> Iterator[str]:
    registry = Registry(node.bootstrap).start()
    try:
        yield registry.url
    finally:
        registry.stop()


def reading(spark: Any, node: OttlaNode, topic: str, **options: str) -> Any:
    made = spark.read.format("ottla").option("kafka.bootstrap.servers", node.bootstrap).option("subscribe", topic)
    return made.options(**options).load()


def new_topic(node: OttlaNode) -> str:
    name = f"typed-{uuid4().hex[:8]}"
    with Blocking(node.bootstrap) as client:
        client.admin.topics.create(name, 2)
    return name


def test_columns_are_those_of_from_avro(spark: Any, node: OttlaNode, url: str) -> None:
    topic = new_topic(node)
    text = json.dumps(SCHEMA)
    mark = schema_mark(SchemaRegistry(RegistryOptions.of(url)).register(f"{topic}-value", SchemaSource(text)))
    with Blocking(node.bootstrap) as client:
        client.send_all(topic, [(None, encoded(SCHEMA, row(number), mark)) for number in range(200)])
    typed = reading(spark, node, topic, **{"value.format": "avro", "schema.registry.url": url})
    theirs = reading(spark, node, topic).selectExpr(f"from_avro(substring(value, 6), '{text}') as value")
    assert typed.schema["value"].dataType == theirs.schema["value"].dataType
    ours = sorted(typed.select("value").collect(), key=lambda each: each.value.id)
    assert ours == sorted(theirs.collect(), key=lambda each: each.value.id)
    assert len(ours) == 200


# What a column is in Spark's SQL, and the Avro type that it is written as; every type that has one.
WRITTEN: dict[str, tuple[str, Any]] = {
    "flag": ("id % 2 = 0", "boolean"),
    "tiny": ("cast(id as tinyint)", "int"),
    "small": ("cast(-id as smallint)", "int"),
    "number": ("cast(id as int)", "int"),
    "big": ("1700000000123 + id", {"type": "long", "logicalType": "timestamp-millis"}),
    "real": ("cast(if(id = 0, 'NaN', '-0.0') as float)", "float"),
    "wide": ("cast(id / 7 as double)", "double"),
    "price": (
        "cast(id - 3.25 as decimal(9, 2))",
        {"type": "fixed", "name": "P", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2},
    ),
    "exact": (
        "cast(id as decimal(38, 9))",
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9},
    ),
    "name": ("cast(concat('n', id) as varchar(9))", "string"),
    "letter": ("cast(if(id % 2 = 0, 'A', 'B') as char(1))", {"type": "enum", "name": "L", "symbols": ["B", "A"]}),
    "raw": ("unhex(lpad(hex(id), 4, '0'))", {"type": "fixed", "name": "W", "size": 2}),
    "bytes": ("cast(concat('n', id) as binary)", "bytes"),
    "day": ("date_sub(date'1970-01-02', cast(id as int))", {"type": "int", "logicalType": "date"}),
    "plain_day": ("date'0001-01-01'", "int"),
    "millis": ("timestamp_micros(1 - 1000 * id)", {"type": "long", "logicalType": "timestamp-millis"}),
    "micros": ("timestamp'2026-03-08 01:59:59.999999'", {"type": "long", "logicalType": "timestamp-micros"}),
    "plain_at": ("timestamp_micros(-1 - id)", "long"),
    "local": ("timestamp_ntz'2026-03-08 02:30:00.000001'", {"type": "long", "logicalType": "local-timestamp-micros"}),
    "time": ("time'23:59:59.999999'", {"type": "long", "logicalType": "time-micros"}),
    "lasted": ("make_dt_interval(id, 1, 2, 3.000004)", "long"),
    "note": ("if(id % 3 = 0, null, concat('n', id))", ["null", "string"]),
    "tags": ("transform(sequence(0, id % 4), x -> timestamp_millis(x))", {"type": "array", "items": ["null", "long"]}),
    "counts": ("map(concat('k', id), id)", {"type": "map", "values": ["long", "null"]}),
    "inner": (
        "named_struct('X', id / 7)",
        {"type": "record", "name": "I", "fields": [{"name": "x", "type": ["double", "null"]}]},
    ),
    "either": (
        "named_struct('member0', if(id % 2 = 0, concat('m', id), null), 'member1', if(id % 3 = 1, id, null))",
        ["string", "null", "long"],
    ),
}


@pytest.fixture
def in_new_york(spark: Any) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def test_values_are_written_and_read_as_by_to_avro_and_from_avro(
    spark: Any, node: OttlaNode, in_new_york: None
) -> None:
    fields = [{"name": name, "type": of} for name, (_, of) in WRITTEN.items()]
    text = json.dumps({"type": "record", "name": "Written", "fields": fields})
    topic = new_topic(node)
    frame = spark.range(20).selectExpr(*(f"{sql} as {name}" for name, (sql, _) in WRITTEN.items()))
    made = frame.write.format("ottla").mode("append").option("kafka.bootstrap.servers", node.bootstrap)
    made.option("topic", topic).options(**{"value.format": "avro", "value.schema": text}).save()
    with Blocking(node.bootstrap) as client:
        ours = sorted(each.value for each in client.read(topic))
    theirs = frame.selectExpr(f"to_avro(struct(*), '{text}') as value").collect()
    assert ours == sorted(bytes(each.value) for each in theirs)
    typed = reading(spark, node, topic, **{"value.format": "avro", "value.schema": text}).select("value")
    read = reading(spark, node, topic).selectExpr(f"from_avro(value, '{text}') as value")
    assert typed.schema["value"].dataType == read.schema["value"].dataType
    found = [sorted(str(row) for row in each.collect()) for each in (typed, read)]
    assert found[0] == found[1] and len(found[0]) == 20


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_what_is_written_typed_is_read_typed(spark: Any, node: OttlaNode, url: str, kind: str) -> None:
    topic = new_topic(node)
    options = {"value.format": kind, "schema.registry.url": url, "key.format": "string"}
    frame = spark.range(300).selectExpr(
        "cast(id as string) as key",
        "id",
        "case when id % 3 = 0 then null else concat('n', id) end as note",
        "timestamp_micros(id * 1000001) as at",
        "transform(sequence(0, id % 4), x -> cast(x as string)) as tags",
        "named_struct('x', id / 7) as inner",
    )
    made = frame.write.format("ottla").mode("append").option("kafka.bootstrap.servers", node.bootstrap)
    made.option("topic", topic).options(**options).save()
    back = reading(spark, node, topic, **options, **{"columns.flatten": "true", "columns": "key,value"})
    assert sorted(back.select(frame.columns).collect(), key=lambda each: each.id) == frame.collect()


def test_bad_records_in_a_real_job(spark: Any, node: OttlaNode, url: str) -> None:
    topic, dead = new_topic(node), new_topic(node)
    mark = schema_mark(
        SchemaRegistry(RegistryOptions.of(url)).register(f"{topic}-value", SchemaSource(json.dumps(SCHEMA)))
    )
    with Blocking(node.bootstrap) as client:
        client.send_all(topic, [(None, encoded(SCHEMA, row(1), mark)), (b"k", b"nonsense"), (None, mark)])
    options = {"value.format": "avro", "schema.registry.url": url}
    corrupt = reading(spark, node, topic, **options, **{"on.bad": "corrupt"}).where("_corrupt is not null")
    assert sorted(each.value for each in corrupt.select("_corrupt.value").collect()) == [
        bytearray(mark),
        bytearray(b"nonsense"),
    ]
    assert reading(spark, node, topic, **options, **{"on.bad": "dlq", "dlq.topic": dead}).count() == 1
    with Blocking(node.bootstrap) as client:
        assert sorted(each.value or b"" for each in client.read(dead)) == [mark, b"nonsense"]
    with pytest.raises(Exception, match="does not decode"):
        reading(spark, node, topic, **options).count()
