"""The batch reader: the driver plans ranges of offsets, executors read them.

Rules:
- A read is planned from one snapshot (`spark.read.snapshot`), taken when the query runs; so each query of a DataFrame
  may see more records than the one before, as with Spark's connector.
- A starting or ending offset beyond the end of the log is data loss, because the records before it cannot be read.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, TopicPartition
from ottla.spark.options import (
    MAX_BYTES_PER_PARTITION,
    MAX_RECORDS_PER_PARTITION,
    MIN_PARTITIONS,
    STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY,
)
from ottla.spark.plain import told_plainly
from ottla.spark.read.filters import ReadBounds, narrow
from ottla.spark.read.lookup import Lookup
from ottla.spark.read.loss import DataLoss, Reason, report
from ottla.spark.read.offsets import EARLIEST_OFFSET, Everywhere, Limit, Offsets, Specific
from ottla.spark.read.plan import TaskRange, split
from ottla.spark.read.settings import ReadSettings
from ottla.spark.read.shape import RowShape
from ottla.spark.read.snapshot import Snapshot, resolved
from ottla.spark.read.task import read_range
from ottla.spark.runtime.worker_memory import keep_freed_memory, settle

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY_ID = "sql.streaming.queryId"


class RangePartition(InputPartition):
    """The range of offsets that one task reads."""

    def __init__(self, part: TaskRange | None) -> None:
        super().__init__(part)
        self.part = part


class OttlaReader(DataSourceReader):
    """Reads the records that the options choose, once."""

    def __init__(self, settings: ReadSettings, shape: RowShape) -> None:
        self.settings = settings
        self.shape = shape
        self.bounds = ReadBounds()

    @told_plainly
    def partitions(self) -> list[InputPartition]:
        settings = self.settings
        lookup = Lookup(settings, f"{settings.group(None)}-driver")
        try:
            limits = {"starting": settings.starting, "ending": settings.ending}
            snapshot = lookup.snapshot(limits=limits, since_ms=self.bounds.since_ms)
            parts = tasks(settings, lambda: lookup, self._ranges(snapshot))
        finally:
            lookup.close()
        settle()
        return [RangePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return read_partition(self.settings, self.shape, partition)

    def _ranges(self, snapshot: Snapshot) -> list[TaskRange]:
        settings = self.settings
        strategy = settings.options[STARTING_OFFSETS_BY_TIMESTAMP_STRATEGY]
        starts = resolved(settings.starting, snapshot, nothing_so_late=strategy)
        ends = self._ends(snapshot)
        since = self.bounds.since_ms
        ranges = []
        for partition in filter(self.bounds.holds, snapshot.ends):
            self._check_start(partition, starts[partition], snapshot.ends[partition])
            start, end = self.bounds.clip(starts[partition], ends[partition])
            if since is not None:
                late = snapshot.at_times[partition, since]
                start = end if late is None else max(start, late)
            from_earliest = start == starts[partition] and _is_earliest(settings.starting, partition)
            topic_id = snapshot.topic_ids.get(partition.topic, NO_ID)
            epoch = snapshot.epochs.get(partition, NO_LEADER_EPOCH)
            ranges.append(TaskRange(partition, start, end, from_earliest, topic_id, epoch))
        return ranges

    def _check_start(self, partition: TopicPartition, start: int, latest: int) -> None:
        if start > latest:
            what = f"the starting offset {start} of {partition} is beyond its end, {latest}"
            report(DataLoss(partition, Reason.AHEAD, what), fail=self.settings.fail_on_data_loss)

    def _ends(self, snapshot: Snapshot) -> Offsets:
        """The ending offsets; one that is behind the end of its log is data loss, because a batch does not wait for
        records.
        """
        ends = resolved(self.settings.ending, snapshot)
        for partition, end in ends.items():
            latest = snapshot.ends[partition]
            if end > latest:
                what = f"the ending offset {end} of {partition} is beyond its end, {latest}"
                report(DataLoss(partition, Reason.AHEAD, what), fail=self.settings.fail_on_data_loss)
                ends[partition] = latest
        return ends


class FilteringReader(OttlaReader):
    """A reader that takes over filters. It is a class of its own because Spark refuses a reader with this method while
    the setting `spark.sql.python.filterPushdown.enabled` is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        if self.shape.typed is not None:
            yield from filters  # a typed column may have the name of a column of the record
            return
        for bounds, left in narrow(self.bounds, filters):
            self.bounds = bounds
            if left is not None:
                yield left


def tasks(settings: ReadSettings, lookup: Callable[[], Lookup], ranges: list[TaskRange]) -> list[TaskRange]:
    """The ranges, split as the options say."""
    options = settings.options
    max_bytes = options[MAX_BYTES_PER_PARTITION]
    per_offset = {} if max_bytes is None else lookup().bytes_per_offset(each.partition for each in ranges if each.size)
    return split(
        ranges,
        min_partitions=options[MIN_PARTITIONS],
        max_records=options[MAX_RECORDS_PER_PARTITION],
        max_bytes=max_bytes,
        bytes_per_offset=per_offset,
    )


def read_partition(settings: ReadSettings, shape: RowShape, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
    """Read the rows of one task, in an executor."""
    part = partition.part if isinstance(partition, RangePartition) else None
    if part is None:
        return iter(())
    context = TaskContext.get()
    if context is not None:
        keep_freed_memory()
    query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
    number = context.partitionId() if context is not None else 0
    client_id = f"consumer-{settings.group(query_id)}-executor-{number}"
    batches = read_range(settings, part, client_id) if shape.typed is None else _typed(settings, shape, part, client_id)
    return _as_declared(batches, shape)


def _as_declared(batches: "Iterator[pa.RecordBatch]", shape: RowShape) -> "Iterator[pa.RecordBatch]":
    """The batches, cast to exactly the schema that was declared to Spark."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(shape.schema, timezone="UTC")
    for batch in batches:
        yield batch if batch.schema == wanted else batch.cast(wanted)


def _typed(settings: ReadSettings, shape: RowShape, part: TaskRange, client_id: str) -> "Iterator[pa.RecordBatch]":
    """Decoded rows; bad records are handled as the options say."""
    from ottla.spark.typed.dead_letters import send_dead

    typed = shape.typed
    assert typed is not None
    columns = tuple(dict.fromkeys((*settings.columns, *sorted(typed.needs))))
    for raw in read_range(settings, part, client_id, columns):
        applied = typed.apply(raw, settings.columns)
        if applied.dead is not None and typed.dlq_topic is not None:
            send_dead(settings.kafka.client_options(f"{client_id}-dlq"), typed.dlq_topic, applied.dead)
        yield applied.batch


def _is_earliest(limit: Limit, partition: object) -> bool:
    if isinstance(limit, Specific):
        return limit.offsets.get(partition) == EARLIEST_OFFSET  # type: ignore[call-overload, no-any-return]
    return limit == Everywhere(EARLIEST_OFFSET)
