"""Avro columns in Spark: `value.format=avro` through a registry against the connector with `from_avro`, same topic.

All five fields are used. Spark's own function has no registry: it is given the schema, and the five bytes in front are
cut off. `ottla_value` leaves out the columns that the job does not need, as Spark does by itself for its own connector;
`ottla` reads all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from bench import avro_records, probe
from bench.spark.read import TUNED
from bench.spark.turns import Length, Say, Stage, Taken
from bench.workloads import PARTITIONS

TOPIC = "spark-avro"
FIELDS = (
    *("count(*) n", "sum(value.id) id", "sum(value.amount) amount", "max(value.at) at"),
    *("count(value.note) notes", "sum(length(value.note)) note", "sum(length(value.who)) who", "max(value.who) last"),
)
THEIRS = f"from_avro(substring(value, 6), '{avro_records.SCHEMA_TEXT}') as value"
READERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "connector": ("kafka", {}),
    "connector_tuned": ("kafka", TUNED),
    "ottla": ("ottla", {"value.format": "avro"}),
    "ottla_value": ("ottla", {"value.format": "avro", "columns": "value"}),
}


def spark_avro(stage: Stage, length: Length, say: Say) -> dict[str, Taken]:
    bootstrap = stage.ground.subject.bootstrap
    probe.create_topics(bootstrap, [TOPIC], PARTITIONS)
    schema_id = stage.ground.register(TOPIC, avro_records.SCHEMA_TEXT)
    avro_records.produce(bootstrap, TOPIC, avro_records.values(schema_id), length.records)

    def job(reader: str) -> AbstractContextManager[Callable[[], Any]]:
        kind, options = READERS[reader]
        given = {"kafka.bootstrap.servers": bootstrap, "subscribe": TOPIC, **options}
        if kind == "ottla":
            given["schema.registry.url"] = stage.ground.registry_url

        def read() -> Any:
            frame = stage.session.read.format(kind).options(**given).load()
            (row,) = (frame if kind == "ottla" else frame.selectExpr(THEIRS)).selectExpr(*FIELDS).collect()
            assert row.n == length.records, row
            return row

        return nullcontext(read)

    return stage.turns(length, READERS, job, lambda text: say(f"Avro columns: {text}"))
