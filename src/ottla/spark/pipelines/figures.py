"""Figures of a query from Spark's report of a micro-batch: rates, lag, watermark, state. All values can be written as
JSON.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.spark.progress import read_offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

FIRST_BATCH = "first batch running"

# What Spark reports while there is no watermark.
_EPOCH = "1970-01-01T00:00:00.000Z"


def begun(query: "StreamingQuery", name: str) -> dict[str, Any]:
    """Figures of a query that has finished no batch since it was started: `phase` says whether the first one is
    running.
    """
    status = query.status
    is_busy = status["isDataAvailable"] or status["isTriggerActive"]
    return {
        "query": name,
        "id": str(query.id),
        "run": str(query.runId),
        "batch": None,
        "phase": FIRST_BATCH if is_busy else "waiting for data",
        "lag": None,
        "lag_seconds": None,
    }


def figures_of(progress: "StreamingQueryProgress") -> dict[str, Any]:
    """Figures of one batch. `lag` is the number of records that existed and were not read; None if no source reports
    it.
    """
    operators = progress.stateOperators
    watermark = progress.eventTime.get("watermark") if progress.eventTime else None
    return {
        "query": progress.name or str(progress.id),
        "id": str(progress.id),
        "run": str(progress.runId),
        "batch": progress.batchId,
        "at": progress.timestamp,
        "rows": progress.numInputRows,
        "input_rate": _number(progress.inputRowsPerSecond),
        "processed_rate": _number(progress.processedRowsPerSecond),
        "batch_ms": progress.durationMs.get("triggerExecution", progress.batchDuration),
        "watermark": None if watermark == _EPOCH else watermark,
        "state_rows": sum(each.numRowsTotal for each in operators),
        "state_bytes": sum(each.memoryUsedBytes for each in operators),
        "late_rows": sum(each.numRowsDroppedByWatermark for each in operators),
        "written_rows": progress.sink.numOutputRows if progress.sink.numOutputRows >= 0 else None,
        "lag": lag_of(progress),
        "lag_seconds": None,
    }


def lag_of(progress: "StreamingQueryProgress") -> int | None:
    """The number of records between the end of the batch and the ends of the partitions; None if unknown."""
    found: int | None = None
    for source in progress.sources:
        end, latest = read_offsets(source.endOffset), read_offsets(source.latestOffset)
        if latest:
            found = (found or 0) + sum(max(offset - end.get(part, 0), 0) for part, offset in latest.items())
    return found


def _number(value: float | None) -> float | None:
    """The value rounded; None for NaN and infinity, which JSON does not have (the first batch has no batch before it to
    compute a rate from).
    """
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return round(value, 1)


def merged(known: Mapping[str, dict[str, Any]], new: dict[str, Any]) -> dict[str, Any]:
    """The latest figures of a query, with totals since the pipeline was started, over all restarts of the query."""
    before = known.get(new["query"], {})
    totals = {f"total_{name}": before.get(f"total_{name}", 0) + (new[name] or 0) for name in ("rows", "late_rows")}
    return {**new, **totals}
