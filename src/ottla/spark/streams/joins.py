"""Joins: a stream with a table, and two streams within a time window."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues
    from pyspark.sql.types import StructType


def join_table(stream: "DataFrame", table: "DataFrame", on: str | list[str], how: str = "inner") -> "DataFrame":
    """Join each record with its row of a table. Kafka Streams: `stream.join(globalTable)`, `leftJoin`.

    `table` is a batch DataFrame (`table(...)`, Delta, Parquet, JDBC): Spark reads it for every micro-batch, so changes
    of the table take effect with the next one. The join is stateless: a change of the table alone produces no rows, as
    in Kafka Streams.
    """
    if how not in ("inner", "left"):
        raise ValueError(f"a stream joins a table inner or left, not {how!r}")
    names = [on] if isinstance(on, str) else on
    return stream.join(_without_clashes(stream, table, names), names, how)


def join_streams(
    left: "DataFrame",
    right: "DataFrame",
    on: str | list[str],
    within: str,
    how: str = "inner",
    *,
    time: str = "timestamp",
    grace: str = "0 seconds",
) -> "DataFrame":
    """Records of two streams whose keys are equal and whose times are at most `within` apart. Kafka Streams:
    `stream.join(other, JoinWindows.ofTimeDifferenceAndGrace)`; `how`: inner, left, right, full.

    Columns of the right side whose names are also on the left side (other than `on`) get the suffix `_right`. Spark
    keeps records as long as a matching one may still come; an outer row without a match is produced after that.
    """
    from pyspark.sql import functions as F

    names = [on] if isinstance(on, str) else on
    ours = left.withWatermark(time, grace)
    theirs = right.select(*(F.col(f"`{name}`").alias(f"_right_{name}") for name in right.columns)).withWatermark(
        f"_right_{time}", grace
    )
    span = F.expr(f"INTERVAL {within}")
    condition = (F.col(f"_right_{time}") >= F.col(time) - span) & (F.col(f"_right_{time}") <= F.col(time) + span)
    for name in names:
        condition = condition & (F.col(name) == F.col(f"_right_{name}"))
    joined = ours.join(theirs, condition, {"full": "full_outer"}.get(how, how))
    columns = [
        F.coalesce(F.col(name), F.col(f"_right_{name}")).alias(name)
        if name in names and how != "inner"
        else F.col(name)
        for name in left.columns
    ]
    columns += [
        F.col(f"_right_{name}").alias(f"{name}_right" if name in left.columns else name)
        for name in right.columns
        if name not in names
    ]
    return joined.select(*columns)


def join_changes(stream: "DataFrame", changes: "DataFrame", on: str = "key", how: str = "inner") -> "DataFrame":
    """Join each record with its row of a table that is kept in Spark's state. Kafka Streams: `stream.join(table)`.

    `changes` is a stream of records with the key `on` and a `value` (null deletes), in order of `offset`: `topic(...)`
    of a compacted topic. Unlike with `join_table` nothing is read twice, and state is partitioned by key. Within one
    micro-batch the changes of the table are applied first, then the stream's records are joined.
    """
    from pyspark.sql import functions as F

    if how not in ("inner", "left"):
        raise ValueError(f"a stream joins a table inner or left, not {how!r}")
    added = [name for name in changes.columns if name != on]
    clash = {name: f"{name}_right" if name in stream.columns else name for name in added}
    ours, theirs = stream.drop(on).schema, changes.drop(on).schema
    record = F.struct(*(F.col(f"`{name}`") for name in ours.names))
    row = F.struct(*(F.col(f"`{name}`") for name in theirs.names))
    both = stream.select(F.col(on), record.alias("_record"), F.lit(None).cast(theirs).alias("_row")).unionByName(
        changes.select(F.col(on), F.lit(None).cast(ours).alias("_record"), row.alias("_row"))
    )
    output = _output_type(stream, changes, on, clash)
    return both.groupBy(on).transformWithState(
        _TableJoin(theirs, stream.columns, output.names, on, how), output, "append", "none"
    )


class _TableJoin(StatefulProcessor):
    """Keeps the table's row of each key, and joins records with it."""

    def __init__(self, row_type: "StructType", columns: list[str], output: list[str], on: str, how: str) -> None:
        self._row_type = row_type
        self._columns = columns
        self._output = output
        self._on = on
        self._how = how

    def init(self, handle: "StatefulProcessorHandle") -> None:
        self._table = handle.getValueState("table", self._row_type)

    def handleInputRows(self, key: Any, rows: "Iterator[Row]", timerValues: "TimerValues") -> "Iterator[Row]":
        from pyspark.sql import Row

        records: list[Row] = []
        updates: list[Row] = []
        for row in rows:
            (records if row["_row"] is None else updates).append(row)
        if updates:
            newest = max((row["_row"] for row in updates), key=lambda each: each["offset"])
            if newest["value"] is None:
                self._table.clear()
            else:
                # By name: Spark passes structs in rows as dictionaries.
                self._table.update(tuple(newest[name] for name in self._row_type.names))
        found = self._table.get() if self._table.exists() else None
        if not records or (found is None and self._how == "inner"):
            return
        added = tuple(found) if found is not None else (None,) * len(self._row_type)
        for row in records:
            record = row["_record"]
            own = (key[0] if name == self._on else record[name] for name in self._columns)
            yield Row(*self._output)(*own, *added)

    def close(self) -> None:
        pass


def _output_type(stream: "DataFrame", changes: "DataFrame", on: str, names: dict[str, str]) -> "StructType":
    from pyspark.sql.types import StructField, StructType

    own = [StructField(field.name, field.dataType) for field in stream.schema]
    added = [StructField(names[field.name], field.dataType) for field in changes.schema if field.name != on]
    return StructType(own + added)


def _without_clashes(stream: "DataFrame", table: "DataFrame", on: list[str]) -> "DataFrame":
    """The table, with the suffix `_right` on columns that the stream has too."""
    for name in table.columns:
        if name in stream.columns and name not in on:
            table = table.withColumnRenamed(name, f"{name}_right")
    return table
