"""The streaming reader: where each micro-batch ends, and its ranges. Lives in a process beside the driver.

Rules:
- Offsets are Spark's JSON (`spark.offsets`). A query that begins at the latest offsets has an empty first batch from
  `INITIAL` to these: so they are in the checkpoint before anything is read, and a crash cannot move the beginning.
- Topics and partitions are looked for anew for each batch. New ones are read from their beginning; those that are gone,
  a topic that was created anew and offsets that went backwards are data loss.
- With a read limit of all that is available (Trigger.Once) limits by option do not count; with Trigger.AvailableNow
  they do, up to the offsets that were the latest when the query began.
"""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.spark.lookup import Assigned, Lookup
from ottla.spark.loss import DataLoss, Reason, report
from ottla.spark.offsets import LATEST_OFFSET, Everywhere, Offsets, Specific, document_of, offsets_of
from ottla.spark.plan import Range, count_new, limited
from ottla.spark.read_settings import ReadSettings
from ottla.spark.reader import RangePartition, read_partition, tasks
from ottla.spark.shape import Shape

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2: no limits by trigger
    ReadAllAvailable = ReadMaxRows = ReadMinRows = None  # type: ignore[assignment, misc]
    SupportsTriggerAvailableNow = object  # type: ignore[assignment, misc]

Document = dict[str, dict[str, int]]
# "The beginning of the query": no offsets, and yet not the same as those of a pattern that matches nothing.
INITIAL: Document = {"": {}}


class OttlaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what the options say, for ever."""

    def __init__(self, settings: ReadSettings, shape: Shape) -> None:
        self.settings = settings
        self.shape = shape
        self._lookup: Lookup | None = None
        self._topic_ids: dict[str, bytes] = {}
        self._recreated: dict[str, None] = {}  # topics created anew since the last batch
        self._latest: Offsets | None = None
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._triggered_at_s = float("-inf")
        self._asked_from: Document = INITIAL

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "shape": self.shape}  # executors need no more

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["settings"], state["shape"])  # type: ignore[misc]

    # --- where batches end --------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        if _is_moving(self.settings):
            return INITIAL
        return document_of(self._resolve_start())

    def getDefaultReadLimit(self) -> Any:
        most, least = self.settings.options["maxOffsetsPerTrigger"], self.settings.options["minOffsetsPerTrigger"]
        if most is not None:
            return ReadMaxRows(most)
        return ReadMinRows(least) if least is not None else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._find_latest({})

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        start = self._asked_from if start is None else start
        if "" in start:
            self._asked_from = document_of(self._resolve_start())
            self._latest = self._find_latest({})
            return self._asked_from
        begun = offsets_of(start)
        latest = self._latest = self._target if self._target is not None else self._find_latest(begun)
        if ReadAllAvailable is not None and isinstance(limit, ReadAllAvailable):
            ends = latest
        elif self._is_too_early(begun, latest):
            return start
        elif self.settings.options["maxOffsetsPerTrigger"] is not None:
            ends = limited(self._starts(begun, latest), latest, self.settings.options["maxOffsetsPerTrigger"])
        else:
            ends = latest
        self._asked_from = document_of(ends)
        return self._asked_from

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return document_of(self._latest) if self._latest else None

    def _is_too_early(self, begun: Offsets, latest: Offsets) -> bool:
        """Whether more records are to be waited for."""
        least = self.settings.options["minOffsetsPerTrigger"]
        if least is None or self._target is not None:
            return False
        waited_ms = (time.monotonic() - self._triggered_at_s) * 1000
        if waited_ms < self.settings.options["maxTriggerDelay"] and count_new(begun, latest) < least:
            return True
        self._triggered_at_s = time.monotonic()
        return False

    # --- ranges -------------------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        if "" in start:
            return []
        begun, ends = offsets_of(start), offsets_of(end)
        assigned = self._assigned()
        self._report_gone(begun, ends, assigned)
        starts = self._starts(begun, ends, loudly=True)
        ranges = []
        for partition, last in ends.items():
            first = starts.get(partition)
            if first is None:
                what = f"{partition} is gone before anything of it was read"
                self._report(DataLoss(partition, Reason.PARTITION_GONE, what))
            elif last < first:
                what = f"{partition} was read up to {first} and now ends at {last}"
                self._report(DataLoss(partition, Reason.AHEAD, what))
            else:
                ranges.append(Range(partition, first, last, topic_id=assigned.get(partition, b"")))
        self._recreated.clear()
        return [RangePartition(part) for part in tasks(self.settings, self._connected(), ranges)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(self.settings, self.shape, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Offsets are in Spark's checkpoint."""

    def stop(self) -> None:
        if self._lookup is not None:
            self._lookup.close()
            self._lookup = None

    # --- what there is ------------------------------------------------------------------------------------------

    def _connected(self) -> Lookup:
        if self._lookup is None:
            self._lookup = Lookup(self.settings, f"{self.settings.group(None)}-driver")
            self._lookup.reach()
        return self._lookup

    def _assigned(self, *, missing_ok: bool = True) -> Assigned:
        """The partitions as they are now; notes which topics were created anew."""
        assigned = self._connected().assigned(missing_ok=missing_ok)
        for partition, topic_id in assigned.items():
            known = self._topic_ids.get(partition.topic, topic_id)
            if known != topic_id:
                self._recreated[partition.topic] = None
            self._topic_ids[partition.topic] = topic_id
        return assigned

    def _resolve_start(self) -> Offsets:
        assigned = self._assigned(missing_ok=False)
        return self._connected().resolve(self.settings.starting, assigned, starting=True)

    def _find_latest(self, begun: Offsets) -> Offsets:
        """The ends of all partitions. A broker that has just become leader may not know its own yet: what is before the
        beginning is asked for again."""
        options = self.settings.options
        assigned = self._assigned()
        for attempt in range(max(options["fetchOffset.numRetries"], 1)):
            if attempt:
                time.sleep(options["fetchOffset.retryIntervalMs"] / 1000)
            latest = self._connected().latest(assigned)
            behind = [each for each, offset in latest.items() if offset < begun.get(each, 0)]
            if all(each.topic in self._recreated for each in behind):
                break
        return latest

    def _starts(self, begun: Offsets, ends: Mapping[Any, int], *, loudly: bool = False) -> Offsets:
        """Where the batch begins in each partition: new ones and those of topics created anew at their beginning."""
        fresh = [each for each in ends if each not in begun or each.topic in self._recreated]
        assigned = self._assigned()
        first = self._connected().earliest(each for each in fresh if each in assigned)
        if loudly:
            for partition, offset in first.items():
                if offset > 0 and partition.topic not in self._recreated:
                    what = f"{partition} begins at offset {offset}, not at 0"
                    self._report(DataLoss(partition, Reason.LATE_PARTITION, what))
        return {each: first[each] if each in fresh else begun[each] for each in ends if each in first or each in begun}

    def _report_gone(self, begun: Offsets, ends: Offsets, assigned: Assigned) -> None:
        topics = {partition.topic for partition in assigned}
        for topic in self._recreated:
            self._report(DataLoss(None, Reason.RECREATED, f"what was not read of topic {topic!r} is gone"))
        for partition, offset in begun.items():
            if partition not in ends:
                reason = Reason.PARTITION_GONE if partition.topic in topics else Reason.TOPIC_DELETED
                self._report(DataLoss(partition, reason, f"{partition} is gone; it was read up to {offset}"))

    def _report(self, loss: DataLoss) -> None:
        report(loss, fail=self.settings.fail_on_data_loss)


def _is_moving(settings: ReadSettings) -> bool:
    """Whether the beginning would be another one a moment later."""
    limit = settings.starting
    if isinstance(limit, Everywhere):
        return limit.offset == LATEST_OFFSET
    if isinstance(limit, Specific):
        return LATEST_OFFSET in limit.offsets.values()
    return bool(settings.options["startingOffsetsByTimestampStrategy"] == "latest")
