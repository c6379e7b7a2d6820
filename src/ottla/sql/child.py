"""The process of one confined query: it is given a task on its input, and answers frames on its output.

It ends with its query, and when its input ends: then nobody waits for the answer any more.
"""

from __future__ import annotations

import os
import pickle
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.sql.task import FrameKind, SqlForm, SqlTask, encoded_frame

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq
    from duckdb import DuckDBPyConnection

    from ottla.sql.query import Sql

_READ_EVERY_S = 0.3
_BATCH_ROWS = 10_000
_FRAME_ROWS = 100


class SqlAnswers:
    """Writes frames; several threads may."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._lock = threading.Lock()

    def put(self, kind: FrameKind, content: object) -> None:
        with self._lock:
            self._output.write(encoded_frame(kind, content))
            self._output.flush()


def main() -> None:
    """Answer the task on the standard input."""
    answers = SqlAnswers(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # what a library prints is no frame
    size = int.from_bytes(sys.stdin.buffer.read(4), "big")
    task: SqlTask = pickle.loads(sys.stdin.buffer.read(size))  # noqa: S301 - from the parent
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        _bound()
        answer(task, answers)
    except MemoryError:
        answers.put(FrameKind.ERROR, TOO_MUCH_MEMORY)
    except Exception as error:  # of a library: it is told as well, or nobody would know why there is no answer
        answers.put(FrameKind.ERROR, f"the query failed: {type(error).__name__}: {error}"[: task.cell_chars])
    finally:
        os._exit(0)  # threads of Arrow and of the client may wait for something that nobody needs


TOO_MUCH_MEMORY = "the query needs more memory than it may use"


def answer(task: SqlTask, answers: SqlAnswers) -> None:
    """Run the query, and answer its rows."""
    from ottla.sql.query import Sql, SqlError

    def warn(message: str) -> None:
        answers.put(FrameKind.WARNING, message)

    try:
        with Sql(task.client, task.registry, warn, is_confined=True) as sql:
            threading.Thread(target=_tell_read, args=(sql, answers), daemon=True).start()
            result = sql.query(task.query)
            if task.form is SqlForm.TABLE:
                has_more = _table(result, task, answers)
            else:
                has_more = _file(result, task, answers)
            answers.put(FrameKind.READ, sql.rows_read)
            answers.put(FrameKind.DONE, has_more)
    except (SqlError, ApiError, ClientError, OSError, ValueError) as error:
        answers.put(FrameKind.ERROR, error.text if isinstance(error, ApiError) else str(error))


def _bound() -> None:
    for kind in (resource.RLIMIT_DATA,):
        resource.setrlimit(kind, (limits.SQL_PROCESS_BYTES, limits.SQL_PROCESS_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _tell_read(sql: Sql, answers: SqlAnswers) -> None:
    before = 0
    while True:
        time.sleep(_READ_EVERY_S)
        read = sql.rows_read
        if read != before:
            before = read
            answers.put(FrameKind.READ, read)


# --- rows as a table --------------------------------------------------------------------------------------------------


def _table(result: DuckDBPyConnection, task: SqlTask, answers: SqlAnswers) -> bool:
    """Answer the first rows as texts; whether there are more."""
    from ottla.sql.query import SqlError, fetch_rows

    columns = result.description
    if len(columns) > limits.SQL_COLUMNS_MAX:
        raise SqlError(f"a result has at most {limits.SQL_COLUMNS_MAX} columns here, not {len(columns):,}")
    shown_columns = [[_cell(name, task.cell_chars), _cell(kind, task.cell_chars)] for name, kind, *_ in columns]
    answers.put(FrameKind.COLUMNS, shown_columns)
    left = min(task.rows_max, limits.SQL_CELLS_MAX // len(columns))
    at_once = min(_FRAME_ROWS, limits.SQL_FRAME_CELLS_MAX // len(columns))
    while rows := fetch_rows(result, min(left + 1, at_once)):
        shown = rows[:left]
        answers.put(FrameKind.ROWS, [[_cell(each, task.cell_chars) for each in row] for row in shown])
        left -= len(shown)
        if len(rows) > len(shown):
            return True
    return False


def _cell(value: object, chars: int) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes | bytearray):
        value = bytes(value[: 4 * chars]).decode("utf-8", "replace")
    text = str(value)
    return text if len(text) <= chars else text[: chars - 1] + "…"


# --- rows as a file ---------------------------------------------------------------------------------------------------


def _file(result: DuckDBPyConnection, task: SqlTask, answers: SqlAnswers) -> bool:
    """Answer the rows as the bytes of a file; whether there are more."""
    from ottla.sql.query import arrow_batches

    schema, batches = arrow_batches(result, _BATCH_ROWS)
    write = _csv if task.form is SqlForm.CSV else _parquet
    left, size, has_more = task.rows_max, 0, False

    def put(data: bytes) -> None:
        nonlocal size
        size += len(data)
        for at in range(0, len(data), limits.SQL_PART_BYTES):
            answers.put(FrameKind.BYTES, data[at : at + limits.SQL_PART_BYTES])

    with write(schema, put) as sink:
        for batch in batches:
            kept = batch.slice(0, left)
            if kept.num_rows:
                sink.write(kept)
            left -= kept.num_rows
            has_more = kept.num_rows < batch.num_rows or size > limits.SQL_EXPORT_BYTES_MAX
            if has_more:
                break
    return has_more


class _Pipe:
    """What Arrow needs of a file; it hands on what is written into it."""

    closed = False

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._at = 0

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def write(self, data: bytes) -> int:
        taken = bytes(data)
        self._put(taken)
        self._at += len(taken)
        return len(taken)

    def tell(self) -> int:
        return self._at


class _Sink:
    """A writer of Arrow, which is closed at the end."""

    def __init__(
        self, writer: csv.CSVWriter | pq.ParquetWriter, convert: Callable[[pa.RecordBatch], pa.RecordBatch]
    ) -> None:
        self._writer = writer
        self._convert = convert

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(self._convert(batch))

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()


def _parquet(schema: pa.Schema, put: Callable[[bytes], None]) -> _Sink:
    import pyarrow.parquet as pq

    return _Sink(pq.ParquetWriter(_Pipe(put), schema), lambda batch: batch)


def _csv(schema: pa.Schema, put: Callable[[bytes], None]) -> _Sink:
    """CSV has texts and numbers only: nested values and bytes become texts."""
    import pyarrow as pa
    import pyarrow.csv as csv

    plain = pa.schema([pa.field(each.name, _csv_type(each.type)) for each in schema])

    def convert(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            column if column.type == field.type else pa.array(_texts(column), pa.string())
            for column, field in zip(batch.columns, plain, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=plain)

    return _Sink(csv.CSVWriter(_Pipe(put), plain), convert)


def _texts(column: pa.Array) -> list[str | None]:
    return [_cell(each, limits.SQL_FRAME_BYTES_MAX) for each in column.to_pylist()]


def _csv_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    types = pa.types
    keeps = types.is_primitive(kind) or types.is_decimal(kind) or types.is_boolean(kind) or types.is_string(kind)
    return kind if keeps and not types.is_duration(kind) else pa.string()


if __name__ == "__main__":
    main()
