"""Reading into Spark: the source `ottla` against Spark's own connector, same session, same topic, all columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from bench import probe
from bench.spark.turns import Length, Say, Stage, Taken
from bench.workloads import PARTITIONS, produce

RECORD_BYTES = 100
TOPIC = "spark-read"
# Every column is used, so that no source can leave one out.
COLUMNS = (
    *("count(*) n", "sum(length(value)) size", "sum(length(key)) k", "sum(length(topic)) t", "sum(partition) p"),
    *("max(offset) o", "max(timestamp) ts", "sum(timestampType) tt"),
)
TUNED = {"kafka.max.poll.records": "5000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
READERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "connector": ("kafka", {}),
    "connector_tuned": ("kafka", TUNED),
    "ottla": ("ottla", {}),
}


def spark_read(stage: Stage, length: Length, say: Say) -> dict[str, Taken]:
    subject = stage.ground.subject
    probe.create_topics(subject.bootstrap, [TOPIC], PARTITIONS)
    produce(subject, TOPIC, length.records, RECORD_BYTES, acks="1", batch_size=65_536, linger_ms=20)

    def job(reader: str) -> AbstractContextManager[Callable[[], Any]]:
        kind, options = READERS[reader]
        given = {"kafka.bootstrap.servers": subject.bootstrap, "subscribe": TOPIC, **options}

        def read() -> Any:
            (row,) = stage.session.read.format(kind).options(**given).load().selectExpr(*COLUMNS).collect()
            assert (row.n, row.size) == (length.records, length.records * RECORD_BYTES), row
            return row

        return nullcontext(read)

    return stage.turns(length, READERS, job, lambda text: say(f"Spark reads: {text}"))
