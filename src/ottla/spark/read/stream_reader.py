"""The streaming reader: it decides where each micro-batch ends, and plans its ranges. It lives in a process beside the
driver.

Rules:
- Offsets are marks (`spark.read.marks`): Spark's JSON, with topic ids and leader epochs. A query that begins at the
  latest offsets has an empty first batch from `INITIAL` to these offsets: so they are in the checkpoint before anything
  is read, and a crash cannot move the beginning.
- A batch begins at the mark of the last batch and ends where a new snapshot says. Its ranges follow from its two marks
  alone (`spark.read.snapshot`).
- With a read limit of all that is available (Trigger.Once) the limits in the options do not apply; with
  Trigger.AvailableNow they do, and the first snapshot is the end of the query.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ottla.spark.options import (
    FETCH_OFFSET_NUM_RETRIES,
    FETCH_OFFSET_RETRY_INTERVAL_MS,
    MAX_OFFSETS_PER_TRIGGER,
    MAX_TRIGGER_DELAY,
    MIN_OFFSETS_PER_TRIGGER,
    STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY,
)
from ottla.spark.plain import told_plainly
from ottla.spark.read.lookup import Lookup
from ottla.spark.read.loss import report
from ottla.spark.read.marks import INITIAL, Document, ReachedOffsets, document_of_mark, is_initial, mark_of
from ottla.spark.read.offsets import LATEST_OFFSET, Everywhere, Offsets, Specific, document_of
from ottla.spark.read.plan import count_new, limited
from ottla.spark.read.reader import RangePartition, read_partition, tasks
from ottla.spark.read.settings import ReadSettings
from ottla.spark.read.shape import RowShape
from ottla.spark.read.snapshot import Snapshot, begins, doubts, next_mark, planned, resolved

if TYPE_CHECKING:
    import pyarrow as pa

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2: no limits by trigger
    ReadAllAvailable = ReadMaxRows = ReadMinRows = None  # type: ignore[assignment, misc]
    SupportsTriggerAvailableNow = object  # type: ignore[assignment, misc]


class OttlaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the records that the options choose, without end."""

    def __init__(self, settings: ReadSettings, shape: RowShape) -> None:
        self.settings = settings
        self.shape = shape
        self._lookup: Lookup | None = None
        self._latest: Offsets = {}
        self._is_available_now = False
        self._target: Snapshot | None = None  # the end of a query with Trigger.AvailableNow
        self._triggered_at_s = float("-inf")
        self._seen: Document = INITIAL  # the last mark that Spark knows; before 4.2 Spark does not pass it

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "shape": self.shape}  # executors need no more

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["settings"], state["shape"])  # type: ignore[misc]

    # --- where batches end --------------------------------------------------------------------------------------

    @told_plainly
    def initialOffset(self) -> dict[str, Any]:
        self._seen = INITIAL if _is_moving(self.settings) else document_of_mark(self._begin()[0])
        return self._seen

    def getDefaultReadLimit(self) -> Any:
        most, least = self.settings.options[MAX_OFFSETS_PER_TRIGGER], self.settings.options[MIN_OFFSETS_PER_TRIGGER]
        if most is not None:
            return ReadMaxRows(most)
        return ReadMinRows(least) if least is not None else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    @told_plainly
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        start = self._seen if start is None else start
        self._seen = self._next(start, limit)
        return self._seen

    def _next(self, start: dict[str, Any], limit: Any) -> Document:
        if is_initial(start):
            first, snapshot = self._begin()
            self._note(snapshot)
            return document_of_mark(first)
        reached = mark_of(start)
        snapshot = self._target or self._look(reached)
        self._note(snapshot)
        most, ends = self.settings.options[MAX_OFFSETS_PER_TRIGGER], snapshot.ends
        if ReadAllAvailable is None or not isinstance(limit, ReadAllAvailable):
            begun = begins(reached, snapshot)
            if self._is_too_early(begun, ends):
                return start
            if most is not None:
                ends = limited(begun, ends, most)
        mark = next_mark(reached, snapshot, ends)
        return start if mark is reached else document_of_mark(mark)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return document_of(self._latest) if self._latest else None

    def _is_too_early(self, begun: Offsets, latest: Offsets) -> bool:
        """Whether the batch waits for more records."""
        least = self.settings.options[MIN_OFFSETS_PER_TRIGGER]
        if least is None or self._is_available_now:
            return False
        waited_ms = (time.monotonic() - self._triggered_at_s) * 1000
        if waited_ms < self.settings.options[MAX_TRIGGER_DELAY] and count_new(begun, latest) < least:
            return True
        self._triggered_at_s = time.monotonic()
        return False

    # --- ranges -------------------------------------------------------------------------------------------------

    @told_plainly
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        self._seen = end
        if is_initial(start):
            return []
        plan = planned(mark_of(start), mark_of(end))
        for loss in plan.losses:
            report(loss, fail=self.settings.fail_on_data_loss)
        return [RangePartition(part) for part in tasks(self.settings, self._connected, plan.ranges)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(self.settings, self.shape, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the offsets are in Spark's checkpoint."""

    def stop(self) -> None:
        if self._lookup is not None:
            self._lookup.close()
            self._lookup = None

    # --- snapshots ----------------------------------------------------------------------------------------------

    def _connected(self) -> Lookup:
        if self._lookup is None:
            self._lookup = Lookup(self.settings, f"{self.settings.group(None)}-driver")
            self._lookup.reach()
        return self._lookup

    def _begin(self) -> tuple[ReachedOffsets, Snapshot]:
        """The mark at which the query begins according to the options, and the snapshot that it was made from."""
        limit = self.settings.starting
        snapshot = self._connected().snapshot(limits={"starting": limit})
        strategy = self.settings.options[STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY]
        return snapshot.mark(resolved(limit, snapshot, nothing_so_late=strategy)), snapshot

    def _look(self, reached: ReachedOffsets) -> Snapshot:
        """A snapshot; it is taken again while records seem to be lost, as often as the options allow."""
        options = self.settings.options
        for attempt in range(max(options[FETCH_OFFSET_NUM_RETRIES], 1)):
            if attempt:
                time.sleep(options[FETCH_OFFSET_RETRY_INTERVAL_MS] / 1000)
            snapshot = self._connected().snapshot(reached, missing_ok=True)
            if not doubts(reached, snapshot):
                break
        return snapshot

    def _note(self, snapshot: Snapshot) -> None:
        self._latest = snapshot.ends
        if self._is_available_now:
            self._target = snapshot


def _is_moving(settings: ReadSettings) -> bool:
    """Whether the starting offsets of the options would be other ones a moment later."""
    limit = settings.starting
    if isinstance(limit, Everywhere):
        return limit.offset == LATEST_OFFSET
    if isinstance(limit, Specific):
        return LATEST_OFFSET in limit.offsets.values()
    return settings.options[STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY] == "latest"
