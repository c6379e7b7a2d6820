"""Late records, which Spark has dropped because of the watermark, as dead letters.

Spark reports only the number of records that it drops. Which records it drops follows from what it writes down before
it runs a batch: in batch N a window is closed, or a record too old, if its end (its time) is not after the watermark of
batch N - 1. That watermark is in the checkpoint, and so are the offsets of batch N. This module reads the batch again
and sends exactly those records.

Rules:
- Only batches in which Spark dropped records, and batches that a killed driver left behind, are read again.
- Letters are written in the sink's exactly-once protocol under the number of the batch: sending those of a batch twice
  changes nothing.
- Only the first stateful step of a query, on one topic, is covered; and only offsets that the log still has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.spark.checkpoints import sink_id, written_down
from ottla.spark.read.marks import ReachedOffsets, mark_of
from ottla.spark.read.offsets import EARLIEST_OFFSET, document_of
from ottla.spark.read.plan import TaskRange
from ottla.spark.read.snapshot import planned
from ottla.spark.service_addresses import bootstrap_of, security_options
from ottla.spark.streams.outputs import dead_letters, to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLACE = ["topic", "partition", "offset"]


@dataclass(frozen=True, slots=True)
class LateTo:
    """Where late records go, and how they are recognised: `records` maps raw records (with their topic, partition and
    offset) to rows that have the column `time`; `window` is the size of the windows, None if the times themselves are
    compared.
    """

    letters: str
    time: str = "timestamp"
    window: str | None = None
    every: str | None = None
    records: Callable[[DataFrame], DataFrame] | None = None


def late_to(
    letters: str,
    *,
    time: str = "timestamp",
    window: str | None = None,
    every: str | None = None,
    records: Callable[[DataFrame], DataFrame] | None = None,
) -> LateTo:
    """Send late records to the topic `letters`, for `@pipeline.query(late=late_to(...))`. Kafka Streams has no
    counterpart.

    `time`, and `window` (and `every`, for hopping ones): as in the query. `records`: the function that the query uses
    to get `time` from raw records, if it is not one of their columns; it must keep topic, partition and offset.
    """
    return LateTo(letters, time, window, every, records)


def send_late(spark: SparkSession, rule: LateTo, checkpoint: str, batch: int, by: str) -> None:
    """Send the letters of one finished batch; does nothing if it dropped no records, or if they were sent before."""
    from pyspark.sql import functions as F

    watermark_ms = _watermark_ms(spark, checkpoint, batch - 1)
    begin, end = (_mark(spark, checkpoint, each) for each in (batch - 1, batch))
    ranges = planned(begin, end).ranges
    if watermark_ms <= 0 or not begin.offsets or not ranges:
        return
    raw = (
        spark.read.format("ottla")
        .options(**{"kafka.bootstrap.servers": bootstrap_of(spark)}, **security_options(bootstrap_of(spark)))
        .option("assign", json.dumps(_indexes(ranges)))
        .option(
            "startingOffsets",
            json.dumps(document_of({each.partition: each.start or EARLIEST_OFFSET for each in ranges})),
        )
        .option("endingOffsets", json.dumps(document_of({each.partition: each.end for each in ranges})))
        .option("includeHeaders", "true")
        .load()
    )
    timed = raw if rule.records is None else rule.records(raw)
    if rule.window is None:
        moment = F.col(rule.time)
    elif rule.every is None:
        moment = F.window(rule.time, rule.window)["end"]
    else:
        # The last of a record's windows: a record is dropped only if all of them are closed.
        timed = timed.withColumn("_window", F.window(rule.time, rule.window, rule.every))
        timed = timed.groupBy(*_PLACE).agg(F.max("_window.end").alias("_end"))
        moment = F.col("_end")
    late = timed.where(moment <= F.timestamp_millis(F.lit(watermark_ms))).select(*_PLACE)
    found = raw.join(late, _PLACE, "left_semi")
    output = to(dead_letters(found, "late", by=by), rule.letters, includeHeaders="true")
    writer = output.frame.write.format("ottla").mode("append").options(**output.options)
    name = sink_id(spark, checkpoint, "late")
    writer.option("delivery", "exactly_once").option("sink.id", name).option("batch.id", batch).save()


def _watermark_ms(spark: SparkSession, checkpoint: str, batch: int) -> int:
    return int(written_down(spark, checkpoint, batch)[0]["batchWatermarkMs"]) if batch >= 0 else 0


def _mark(spark: SparkSession, checkpoint: str, batch: int) -> ReachedOffsets:
    """The mark of all sources of the query together; sources without topics and partitions are skipped."""
    found: dict[str, dict[str, int]] = {}
    for source in written_down(spark, checkpoint, batch)[1:] if batch >= 0 else ():
        for topic, places in source.items() if isinstance(source, dict) else ():
            if isinstance(places, dict):
                found.setdefault(topic, {}).update(places)
    return mark_of(found)


def _indexes(ranges: list[TaskRange]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in ranges:
        found.setdefault(each.partition.topic, []).append(each.partition.partition)
    return found
