"""Writing out of Spark: the sink `ottla` against Spark's own connector, same session, same rows, acks=all.

The rows are cached, and `noop` (Spark's sink that does nothing) shows the cost of the rows alone. Every job writes to a
topic of its own, whose records are counted and which is then deleted, so that the disk does not fill up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from bench.spark.turns import Length, Say, Stage, Taken
from bench.workloads import PARTITIONS
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.offsets import LATEST, resolve
from ottla.model.ids import TopicPartition

RECORD_BYTES = 100
TUNED = {"kafka.batch.size": str(256 << 10), "kafka.linger.ms": "20"}
WRITERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "noop": ("noop", {}),
    "connector": ("kafka", {}),
    "connector_tuned": ("kafka", TUNED),
    "ottla": ("ottla", {"delivery": "at_least_once"}),
    "ottla_exactly_once": ("ottla", {"delivery": "exactly_once"}),
}


def spark_write(stage: Stage, length: Length, say: Say) -> dict[str, Taken]:
    rows = stage.session.range(0, length.records, 1, PARTITIONS).selectExpr(
        "cast(id % 1000 as string) as key",
        f"cast(rpad(cast(id as string), {RECORD_BYTES}, 'x') as binary) as value",
    )
    rows = rows.cache()
    assert rows.count() == length.records
    numbers = itertools.count()
    bootstrap = stage.ground.subject.bootstrap
    with Blocking(bootstrap) as client:

        def job(writer: str) -> AbstractContextManager[Callable[[], Any]]:
            given = {"kafka.bootstrap.servers": bootstrap, "topic": f"spark-write-{next(numbers)}"}
            return _writing(client, rows, writer, length.records, given)

        try:
            return stage.turns(length, WRITERS, job, lambda text: say(f"Spark writes: {text}"))
        finally:
            rows.unpersist()


@contextmanager
def _writing(
    client: Blocking, rows: Any, writer: str, records: int, given: Mapping[str, str]
) -> Iterator[Callable[[], None]]:
    kind, options = WRITERS[writer]
    topic = given["topic"]
    if kind == "noop":
        yield rows.write.format(kind).mode("overwrite").save
        return
    client.admin.topics.create(topic, PARTITIONS)
    yield rows.write.format(kind).mode("append").options(**given, **options).save
    places = [(TopicPartition(topic, index), LATEST) for index in range(PARTITIONS)]
    arrived = sum(client.run(resolve(client.cluster, places)).values())
    # The end of a transaction takes an offset in each partition, for each task.
    assert 0 <= arrived - records <= PARTITIONS * rows.rdd.getNumPartitions(), arrived
    client.admin.topics.delete(topic)
