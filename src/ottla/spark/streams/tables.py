"""Tables: the latest record of each key, where a record with a null value deletes its key.

A compacted topic is such a table; any stream with keys can be read as one.

Rules:
- The latest record is the one with the highest offset. That orders the records of a key if all of them are in one
  partition, which partitioning by key ensures.
- A key whose latest value is null is not in a snapshot; among changes it is a row with a null value.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ottla.spark.service_addresses import conf, note_topics, the_session
from ottla.spark.streams.streams import FORMAT, source_options, topic

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from ottla.model.ids import TopicPartition


def table(*names: str, **options: Any) -> "DataFrame":
    """Topics as a snapshot of a table: one row per key, without deleted keys. Kafka Streams: `builder.globalTable`.

    The result is a batch DataFrame that is read again whenever it is used: for every micro-batch of a stream that it is
    joined with, so the stream is joined with the current table. That costs a read of the whole topic each time. For
    large tables use `topic` and `join_changes`.
    """
    from pyspark.sql import functions as F

    return latest(_anew(names, options)).where(F.col("value").isNotNull())


def _anew(names: tuple[str, ...], options: dict[str, Any]) -> "DataFrame":
    """The current records at each run. Spark plans a source written in Python once, and keeps that plan as long as the
    DataFrame lives; so here the tasks themselves plan what to read.
    """
    told = source_options(*names, **options)
    spark = the_session(options.get("spark"))
    note_topics(names)
    schema = spark.read.format(FORMAT).options(**told).load().schema
    tasks = max(1, int(conf(spark, "spark.sql.shuffle.partitions") or "2"))

    def read(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from ottla.spark.source import OttlaSource

        for batch in batches:
            for number in batch.column(0).to_pylist():
                source = OttlaSource(told)
                reader = source.reader(source.schema())
                for each in reader.partitions():
                    part = each.part  # type: ignore[attr-defined]  # of a RangePartition
                    if part is not None and task_of(part.partition, tasks) == number:
                        yield from reader.read(each)

    return spark.range(0, tasks, 1, tasks).mapInArrow(read, schema)


def task_of(partition: "TopicPartition", tasks: int) -> int:
    """The number of the task that reads a partition. Each task plans for itself which partitions exist, a moment
    earlier or later than the others; so the number depends only on the partition and the number of tasks.
    """
    return (crc32(partition.topic.encode()) + partition.partition) % tasks


def changes(*names: str, **options: Any) -> "DataFrame":
    """Topics as a table, in the form of a stream of the rows that change. Kafka Streams: `builder.table`.

    Each micro-batch has the keys that changed with their latest values (null: deleted), so that an output that
    overwrites by key (`to_changelog`, `to_delta(merge=...)`, a view in memory) has the table. It needs output mode
    `update`; Spark keeps one row of state per key.
    """
    return latest(topic(*names, stream=True, **options))


def latest(records: "DataFrame", by: str = "key", order: str = "offset") -> "DataFrame":
    """The latest row of each `by`, with all columns. Kafka Streams: `toTable`. A stream needs output mode `update`."""
    from pyspark.sql import functions as F

    others = [name for name in records.columns if name != by]
    newest = F.max_by(F.struct(*(F.col(f"`{name}`") for name in others)), F.col(order))
    found = records.groupBy(by).agg(newest.alias("_newest"))
    return found.select(*(by if name == by else F.col(f"_newest.`{name}`").alias(name) for name in records.columns))
