"""The writers for Spark: `df.write.format("ottla")` and `df.writeStream.format("ottla")`.

Rules:
- Schema and options are checked on the driver, before any task.
- A stream's writer is made on the driver once per micro-batch to be pickled for the tasks, and once more to commit.
  Only the first of these may begin a batch; that is why pickling begins it. (A batch writer is made and pickled once,
  and the unpickled copy commits.)
- Output mode complete writes all its rows with every batch, as Spark's own sink does: a topic is not truncated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ottla.spark.option_values import OptionError
from ottla.spark.plain import told_plainly, told_while_pickled
from ottla.spark.runtime.worker_memory import settle
from ottla.spark.sink import driver
from ottla.spark.sink.protocol import BATCH_RUN
from ottla.spark.sink.schema import check_columns
from ottla.spark.sink.settings import WriteSettings, write_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from ottla.spark.typed.writing import TypedOutput

_BATCH_ID, _QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """The message of a task to the driver; `written` is only set with exactly-once delivery."""

    rows: int
    written: driver.TaskReport | None = None


class _Sink:
    """The common part of both writers: it begins a batch when it is pickled for the tasks, and writes their rows."""

    @told_plainly
    def __init__(self, options: Mapping[str, str], schema: StructType, *, streaming: bool) -> None:
        self.settings: WriteSettings = write_settings(options, streaming=streaming)
        self._typed = _typed(options, schema, self.settings)
        self._ticket: driver.Ticket | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self.settings.exactly_once and self._ticket is None:
            with told_while_pickled():
                self._ticket = driver.prepare(self.settings)
        return self.__dict__.copy()

    @told_plainly
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        """Write the rows of a task, in that task."""
        try:
            return self._write(iterator)
        finally:
            settle()

    def _write(self, iterator: Iterator[pa.RecordBatch]) -> TaskDone:
        from ottla.spark.sink import task  # imports numba, which only executors need

        typed = self._typed
        batches = iterator if typed is None else (typed.apply(batch) for batch in iterator)
        if self._ticket is None:
            return TaskDone(task.send(self.settings, batches))
        context = TaskContext.get()
        assert context is not None, "rows are written by tasks"
        run, batch = self._number(context, self._ticket)
        index, attempt = context.partitionId(), context.attemptNumber()
        written = task.write(self.settings, self._ticket, batches, run=run, batch=batch, task=index, attempt=attempt)
        return TaskDone(written.part.rows if written.part is not None else 0, written)

    def _number(self, context: TaskContext, ticket: driver.Ticket) -> tuple[str, int]:
        """The run and the number of the batch that is written. In foreachBatch a batch write belongs to the streaming
        query, if the task has its id (on a Connect server it has not).
        """
        run, number = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if run is None or number is None:
            return BATCH_RUN, ticket.batch
        return run, int(number) if self.settings.batch_id is None else self.settings.batch_id

    @told_plainly
    def commit_all(self, messages: Sequence[WriterCommitMessage | None], batch: int | None) -> None:
        """On the driver, after every task is done: commit the batch."""
        if self.settings.exactly_once:
            found = [each.written for each in messages if isinstance(each, TaskDone) and each.written is not None]
            assert len(found) == len(messages), "a task is missing"
            driver.commit(self.settings, found, batch)

    def abort_all(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver, after a task (which has sent no message) or the commit has failed: abort the batch."""
        driver.abort(self.settings, [each.written if isinstance(each, TaskDone) else None for each in messages])


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("ottla").mode("append")`."""

    @told_plainly
    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError("records can only be added to a topic: use mode('append'), not mode('overwrite')")
        self._sink = _Sink(options, schema, streaming=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.commit_all(messages, None)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.abort_all(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("ottla")`."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._sink = _Sink(options, schema, streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # Spark's name
        self._sink.commit_all(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._sink.abort_all(messages)


def _typed(options: Mapping[str, str], schema: StructType, settings: WriteSettings) -> TypedOutput | None:
    """The encoder of typed columns, if the options ask for one; checks the columns in any case."""
    if all(options.get(f"{side}.format", "raw").strip().lower() == "raw" for side in ("key", "value")):
        check_columns(schema, settings.topic)
        return None
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    from ottla.spark.typed.writing import typed_output

    typed = typed_output(options, to_arrow_schema(schema, timezone="UTC"), settings.topic)
    check_columns(schema if typed is None else from_arrow_schema(typed.schema()), settings.topic)
    return typed
