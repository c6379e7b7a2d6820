"""Topics as DataFrames, and simple operations on streams: setting keys, removing duplicates, repartitioning through a
topic.

All functions take and return Spark's DataFrames, so they can be combined with Spark's own operations.
"""

from typing import TYPE_CHECKING, Any

from ottla.spark.runtime.shared_environment import settle_environment
from ottla.spark.service_addresses import (
    cluster_options,
    note_topics,
    registry_options,
    replaying,
    rereading,
    the_session,
)
from ottla.spark.streams.outputs import Output, to

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "ottla"


def topic(
    *names: str,
    key: str | None = None,
    value: str | None = None,
    schema: str | None = None,
    starting: str = "earliest",
    stream: bool = True,
    spark: "SparkSession | None" = None,
    bootstrap: str | None = None,
    registry: str | None = None,
    **options: object,
) -> "DataFrame":
    """Topics as a stream of their records (or, with `stream=False`, as a batch). Kafka Streams: `builder.stream`.

    Columns: key, value, topic, partition, offset, timestamp, timestampType. `key` and `value` are their formats (avro,
    json, protobuf, string): the columns are typed then, by the registry's schema or by `schema`. `starting`:
    `earliest`, `latest`, or offsets as JSON; it applies if there is no checkpoint yet. `options`: options of the source
    by their names.
    """
    session = the_session(spark)
    told = source_options(
        *names,
        key=key,
        value=value,
        schema=schema,
        starting=starting,
        spark=session,
        bootstrap=bootstrap,
        registry=registry,
        **options,
    )
    note_topics(names)
    again = rereading.get() if stream else None
    if again is not None:
        return again.frame(session, names, told)
    replay = replaying.get() if stream else None
    if replay is not None:
        del told["startingOffsets"]
        told.update(replay.options(names))
    if stream:
        settle_environment(session)
    reader = session.readStream if stream else session.read
    return reader.format(FORMAT).options(**told).load()


def source_options(
    *names: str,
    key: str | None = None,
    value: str | None = None,
    schema: str | None = None,
    starting: str = "earliest",
    spark: "SparkSession | None" = None,
    bootstrap: str | None = None,
    registry: str | None = None,
    **options: object,
) -> dict[str, str]:
    """The source's options for the arguments of `topic`."""
    if not names:
        raise ValueError("the name of a topic is needed")
    session = the_session(spark)
    told = {
        **cluster_options(session, bootstrap, options),
        "subscribe": ",".join(names),
        "startingOffsets": starting,
    }
    given = {"key.format": key, "value.format": value, "value.schema": schema}
    if key or value:
        told.update(registry_options(session, registry, options))
    told.update({name: each for name, each in given.items() if each is not None})
    told.update({name: str(each) for name, each in options.items()})
    return told


def with_key(stream: "DataFrame", key: "Column | str") -> "DataFrame":
    """The same records under another key. Kafka Streams: `selectKey`."""
    from pyspark.sql import functions as F

    return stream.withColumn("key", F.expr(key) if isinstance(key, str) else key)


def dedup(stream: "DataFrame", *by: str, within: str, time: str = "timestamp") -> "DataFrame":
    """Only the first record of each `by`, for records that are at most `within` apart in event time. Kafka Streams: a
    processor with a window store.

    Copies that are further apart may count as new records. A record that is older than the newest time seen by more
    than `within` cannot be told from a copy: it is dropped even if it is the only one of its key (`late_to` keeps such
    records). So `within` has to be as long as records may be out of order. Which of several copies in one micro-batch
    is the first is not defined.
    """
    return stream.withWatermark(time, within).dropDuplicatesWithinWatermark(list(by))


def repartition_through(
    stream: "DataFrame",
    name: str,
    *,
    checkpoint: str,
    key: "Column | str | None" = None,
    value: "Column | str | None" = None,
    read: dict[str, Any] | None = None,
) -> "tuple[DataFrame, StreamingQuery]":
    """Write a stream to a topic, under a new key, and read it from there. Kafka Streams: `repartition`, `through`.

    Spark shuffles by itself where it must; go through a topic to keep the result, to share it, or to separate two
    stateful steps. The query that writes is started here (exactly once, with its own checkpoint) and returned too, so
    that the caller can stop it; in a pipeline file define it as a separate query instead. The topic must exist: the
    number of its partitions is the parallelism of its readers.
    """
    output: Output = to(stream, name, key=key, value=value)
    query = output.start(checkpoint=checkpoint, name=f"through-{name}")
    return topic(name, spark=stream.sparkSession, **(read or {})), query
