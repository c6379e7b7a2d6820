"""Convert the columns of an Arrow batch to the form that `records.build_columns` needs, without needless copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.records.build_columns import (
    ALL_THERE,
    NO_BYTES,
    NO_HEADERS,
    NO_PARTITIONS,
    HeaderColumns,
    InputColumn,
    frozen,
    missing,
)
from ottla.spark.sink.schema import BadRows


def bytes_column(array: pa.Array | None, rows: int) -> InputColumn:
    """A column of strings or binaries; all null if the array is None."""
    if array is None or rows == 0:
        return missing(rows)
    array = array.cast(pa.binary())
    _, ends, data = array.buffers()
    return InputColumn(
        frozen(np.frombuffer(data, np.uint8)) if data is not None else NO_BYTES,
        frozen(np.frombuffer(ends, np.int32)[array.offset : array.offset + rows + 1]),
        ALL_THERE if array.null_count == 0 else frozen(_bools(array.is_valid())),
    )


def header_columns(array: pa.Array | None, rows: int) -> HeaderColumns:
    """A column of lists of (name, value)."""
    if array is None or rows == 0 or array.null_count == rows:
        return NO_HEADERS
    counts = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    ends = np.zeros(rows + 1, np.int32)
    np.cumsum(counts, out=ends[1:])
    flat = array.flatten()  # elements of null lists are left out
    names, contents = flat.field(0), flat.field(1)
    if names.null_count or flat.null_count:
        raise BadRows("the name of a header is null")
    return HeaderColumns(frozen(ends), bytes_column(names, len(names)), bytes_column(contents, len(contents)))


def partition_column(array: pa.Array | None, rows: int) -> Any:
    """The partition of each row, -1 if a row has none; NO_PARTITIONS if no row has one."""
    if array is None or array.null_count == rows:
        return NO_PARTITIONS
    given = pc.fill_null(array, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    if bool((_bools(array.is_valid()) & (given < 0)).any()):
        raise BadRows(f"Invalid partition: {given.min()}. Partition number should always be non-negative or null.")
    return frozen(given)


def _bools(array: pa.Array) -> Any:
    return array.to_numpy(zero_copy_only=False)
