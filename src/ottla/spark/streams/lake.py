"""Results in Delta tables: appended exactly once, or merged by key.

Delta's jars must be on Spark's class path, and its extension and catalogue in the session's settings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.spark.streams.outputs import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def to_delta(
    frame: "DataFrame",
    path: str,
    *,
    merge: Sequence[str] = (),
    order: str | None = None,
    deleted: str | None = None,
    mode: str | None = None,
    partition_by: Sequence[str] = (),
) -> Output:
    """Write to a Delta table: append, exactly once; or, with `merge` (key columns), upsert, so that the table has the
    latest row of each key. Kafka Streams has no counterpart; Kafka Connect's upsert sinks do this.

    If a micro-batch has several rows of a key, the one with the highest `order` (a column) counts; without `order`
    there must be only one. `deleted`: the condition under which a row deletes its key. A batch that was interrupted is
    merged again, which does not change the result. `path`: a directory, or a table's name.
    """
    if not merge:
        if order or deleted:
            raise ValueError("order and deleted go with merge")
        options = {"path": path} if _is_path(path) else {}
        return Output(frame, f"delta {path}", "delta", mode or "append", options, partition_by=tuple(partition_by))
    keys = tuple(merge)

    def write(batch: "DataFrame", batch_id: int) -> None:
        merge_batch(batch, path, keys, order, deleted, tuple(partition_by))

    return Output(frame, f"delta {path}", None, mode or "update", each_batch=write)


def merge_batch(
    batch: "DataFrame",
    path: str,
    keys: Sequence[str],
    order: str | None,
    deleted: str | None,
    partition_by: Sequence[str] = (),
) -> None:
    """Merge one micro-batch into the table, which is created if it does not exist."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    spark = batch.sparkSession
    if order is not None:
        ranked = Window.partitionBy(*keys).orderBy(F.col(order).desc())
        batch = batch.withColumn("_rank", F.row_number().over(ranked)).where("_rank = 1").drop("_rank")
    empty = batch.limit(0).write.format("delta").mode("ignore").partitionBy(*partition_by)
    empty.save(path) if _is_path(path) else empty.saveAsTable(path)
    batch.createOrReplaceTempView("ottla_changes")
    target = f"delta.`{path}`" if _is_path(path) else path
    same = " AND ".join(f"t.`{key}` <=> s.`{key}`" for key in keys)
    when_deleted = f"WHEN MATCHED AND ({deleted}) THEN DELETE" if deleted else ""
    insert = (
        f"WHEN NOT MATCHED AND NOT coalesce({deleted}, false) THEN INSERT *"
        if deleted
        else "WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(
        f"MERGE INTO {target} t USING ottla_changes s ON {same} {when_deleted} WHEN MATCHED THEN UPDATE SET * {insert}"
    )


def _is_path(path: str) -> bool:
    return "/" in path
