"""Figures of a query from Spark's report of a micro-batch: rates, lag, watermark, state. Plain values, as JSON has
them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.spark.progress import read_offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

FIRST_BATCH = "first batch running"

# No watermark yet.
_EPOCH = "1970-01-01T00:00:00.000Z"


def begun(query: "StreamingQuery", name: str) -> dict[str, Any]:
    """Of a query that has finished no batch since it was started: `phase` says what it does instead."""
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
    """Of one batch. `lag` is how many records were there that it did not read; None if its sources do not say."""
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
    """Records between what was read and what there was."""
    found: int | None = None
    for source in progress.sources:
        end, latest = read_offsets(source.endOffset), read_offsets(source.latestOffset)
        if latest:
            found = (found or 0) + sum(max(offset - end.get(part, 0), 0) for part, offset in latest.items())
    return found


def _number(value: float | None) -> float | None:
    """NaN and infinity (the first batch has no time before it) are no JSON."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return round(value, 1)


def merged(known: Mapping[str, dict[str, Any]], new: dict[str, Any]) -> dict[str, Any]:
    """The latest of a query, with totals since the pipeline was started: also over restarts of the query."""
    before = known.get(new["query"], {})
    totals = {f"total_{name}": before.get(f"total_{name}", 0) + (new[name] or 0) for name in ("rows", "late_rows")}
    return {**new, **totals}
