"""Outputs of queries: topics, changelogs, Parquet, JDBC, and dead letters.

Each function returns an `Output`: the DataFrame, and how Spark is to write it. `start` starts a streaming query, `save`
writes a batch, `writer` returns Spark's own writer. A pipeline starts its outputs by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ottla.spark.checkpoints import sink_id
from ottla.spark.service_addresses import cluster_options, registry_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

MODES = ("append", "update", "complete")
# The columns of a record besides its value; if there is no column `value`, all other columns are the value.
_RECORD_COLUMNS = ("key", "headers")
_DLQ = "ottla.dlq."


@dataclass(frozen=True, slots=True)
class Output:
    """A DataFrame and where to write it."""

    frame: "DataFrame"
    target: str
    format: str | None
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    topics: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    each_batch: "Callable[[DataFrame, int], None] | None" = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"the output mode is one of {', '.join(MODES)}, not {self.mode!r}")

    def writer(self, checkpoint: str | None = None) -> "DataStreamWriter":
        """Spark's writer, ready to be started. `checkpoint`: the location of the query's checkpoint, with which topics
        are written exactly once also in other modes than append (see `_each_batch`).
        """
        writer = self.frame.writeStream.outputMode(self.mode)
        each_batch = self.each_batch
        if self.format == "ottla" and self.mode != "append":
            each_batch = _each_batch(dict(self.options), checkpoint)
        if each_batch is not None:
            return writer.foreachBatch(each_batch)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        assert self.format is not None
        return writer.format(self.format).options(**self.options)

    def start(self, *, checkpoint: str, name: str | None = None, trigger: str | None = None) -> "StreamingQuery":
        """Start the query. `trigger`: the time between batches, such as "10 seconds", or "once" to read the records
        that exist now.
        """
        writer = self.writer(checkpoint).option("checkpointLocation", checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        return triggered(writer, trigger).start()

    def save(self) -> None:
        """Write a batch DataFrame."""
        if self.each_batch is not None:
            self.each_batch(self.frame, 0)
            return
        assert self.format is not None
        self.frame.write.format(self.format).options(**self.options).mode("append").save()


def _each_batch(options: dict[str, str], checkpoint: str | None) -> "Callable[[DataFrame, int], None]":
    """Write batch by batch in modes other than append, because Spark supports only append for streams into sinks
    written in Python. The same protocol makes it exactly once, if the checkpoint of the query is given.
    """
    known: list[str] = []

    def write(batch: "DataFrame", batch_id: int) -> None:
        writer = batch.write.format("ottla").mode("append").options(**options)
        if checkpoint is not None:
            if not known:
                known.append(options.get("sink.id") or sink_id(batch.sparkSession, checkpoint, "out"))
            writer = writer.option("delivery", "exactly_once").option("sink.id", known[0]).option("batch.id", batch_id)
            writer = writer.option("checkpointLocation", checkpoint)
        writer.save()

    return write


def triggered(writer: "DataStreamWriter", trigger: str | None) -> "DataStreamWriter":
    """The writer with this trigger; None starts the next batch as soon as the last is done."""
    if trigger is None:
        return writer
    return writer.trigger(availableNow=True) if trigger == "once" else writer.trigger(processingTime=trigger)


def to(
    frame: "DataFrame",
    topic: str,
    *,
    key: "Column | str | None" = None,
    value: "Column | str | None" = None,
    partition: "Column | str | None" = None,
    format: str | None = None,
    mode: str = "append",
    dead: "Mapping[str, DataFrame] | None" = None,
    bootstrap: str | None = None,
    registry: str | None = None,
    **options: object,
) -> Output:
    """Write to a topic, exactly once. Kafka Streams: `to`.

    `key` and `value` are columns or expressions; by default they are the columns of these names. Without a column
    `value` all columns but `key` and `headers` are the value: as JSON, or encoded by the registry's schema with
    `format` (avro, json, protobuf). Records go to the partition of their key, or to `partition` (a column or an
    expression), if that is given; a column that is named `partition` is not used, because it says where a record came
    from. `dead`: other records (see `dead_letters`) that go to other topics within the same query, by topic.
    """
    told = cluster_options(frame.sparkSession, bootstrap, options)
    rows = _records(frame, key, value, partition, typed=format is not None)
    if format is not None:
        told["value.format"] = format
        told |= registry_options(frame.sparkSession, registry, options)
    if dead:
        if format is not None:
            raise ValueError(
                "dead letters are bytes as they came: write them with a query of their own, not with format="
            )
        rows = _with_dead(rows, topic, dead)
        told["includeHeaders"] = "true"
    else:
        told["topic"] = topic
    told.update({name: str(each) for name, each in options.items()})
    return Output(rows, f"topic {topic}", "ottla", mode, told, (topic, *(dead or {})))


def to_changelog(
    frame: "DataFrame",
    topic: str,
    *,
    key: "Column | str",
    value: "Column | str | None" = None,
    deleted: "Column | str | None" = None,
    mode: str = "update",
    **options: Any,
) -> Output:
    """Write the changes of a result to a compacted topic: the latest value per key, null for deleted keys. Kafka
    Streams: `toStream().to` of a table.

    For an aggregation with mode `update` each micro-batch writes the keys that changed. `deleted` is the condition for
    rows that delete their key; null counts as false. `table(topic)` reads the result back.
    """
    from pyspark.sql import functions as F

    if deleted is not None:
        gone = F.coalesce(_column(deleted), F.lit(False))
        value = F.when(~gone, _value(frame, value, typed=options.get("format") is not None))
    return to(frame, topic, key=key, value=value, mode=mode, **options)


def to_parquet(frame: "DataFrame", path: str, *, partition_by: Sequence[str] = (), mode: str = "append") -> Output:
    """Write Parquet files; exactly once for readers that use Spark, which keeps a log of the valid files."""
    return Output(frame, path, "parquet", mode, {"path": path}, partition_by=tuple(partition_by))


def to_jdbc(
    frame: "DataFrame", url: str, table: str, *, mode: str = "append", properties: Mapping[str, str] | None = None
) -> Output:
    """Write to a table of a database, at least once: a batch that was interrupted is written again. The driver's jar
    must be on Spark's class path.
    """
    settings = dict(properties or {})

    def write(batch: "DataFrame", batch_id: int) -> None:
        batch.write.jdbc(url, table, mode="append", properties=settings)

    return Output(frame, f"table {table}", None, mode, each_batch=write)


def dead_letters(records: "DataFrame", reason: "Column | str", *, by: str = "spark") -> "DataFrame":
    """Records as letters for a dead-letter topic: unchanged, with added headers for their origin and the reason, which
    `ottla dlq list` and `ottla dlq redrive` read.

    `records` needs the columns of the source: key, value, topic, partition, offset, timestamp. `by`: the name of the
    query that gave them up.
    """
    from pyspark.sql import functions as F

    why = F.lit(reason) if isinstance(reason, str) else reason
    told = {
        "topic": F.col("topic"),
        "partition": F.col("partition").cast("string"),
        "offset": F.col("offset").cast("string"),
        "timestamp": F.unix_millis("timestamp").cast("string"),
        "group": F.lit(by),
        "delivery-count": F.lit("1"),
        "reason": why,
    }
    headers = F.array(
        *(
            F.struct(F.lit(_DLQ + name).alias("key"), column.cast("binary").alias("value"))
            for name, column in told.items()
        )
    )
    kept = F.coalesce(F.col("headers"), F.array()) if "headers" in records.columns else F.array()
    return records.select(
        F.col("key").cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        F.concat(kept.cast("array<struct<key:string,value:binary>>"), headers).alias("headers"),
    )


def _records(
    frame: "DataFrame",
    key: "Column | str | None",
    value: "Column | str | None",
    partition: "Column | str | None",
    *,
    typed: bool,
) -> "DataFrame":
    """The columns that the sink needs."""
    from pyspark.sql import functions as F

    columns = {name: F.col(name) for name in _RECORD_COLUMNS if name in frame.columns}
    columns["value"] = _value(frame, value, typed=typed)
    if key is not None:
        columns["key"] = _column(key)
    if partition is not None:
        columns["partition"] = _column(partition).cast("int")
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def _value(frame: "DataFrame", value: "Column | str | None", *, typed: bool) -> "Column":
    """The given value; by default the column `value`, or else all columns together."""
    from pyspark.sql import functions as F

    if value is not None:
        return _column(value)
    if "value" in frame.columns:
        return F.col("value")
    together = F.struct(*(F.col(f"`{name}`") for name in frame.columns if name not in _RECORD_COLUMNS))
    return together if typed else F.to_json(together)


def _column(given: "Column | str") -> "Column":
    from pyspark.sql import functions as F

    return F.expr(given) if isinstance(given, str) else given


def _with_dead(rows: "DataFrame", topic: str, dead: "Mapping[str, DataFrame]") -> "DataFrame":
    from pyspark.sql import functions as F

    def shaped(frame: "DataFrame", name: str) -> "DataFrame":
        headers = F.col("headers") if "headers" in frame.columns else F.lit(None)
        key = F.col("key") if "key" in frame.columns else F.lit(None)
        partition = F.col("partition") if "partition" in frame.columns else F.lit(None)
        return frame.select(
            key.cast("binary").alias("key"),
            F.col("value").cast("binary").alias("value"),
            headers.cast("array<struct<key:string,value:binary>>").alias("headers"),
            F.lit(name).alias("topic"),
            partition.cast("int").alias("partition"),
        )

    found = shaped(rows, topic)
    for name, letters in dead.items():
        found = found.unionByName(shaped(letters.drop("partition"), name))
    return found
