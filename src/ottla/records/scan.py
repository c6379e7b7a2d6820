"""The loop over records, compiled by numba: from the bytes of many batches to columns.

One source for both ways of running: without numba the same functions run as plain Python, slower by far but equal.
Arrays in, arrays out; nothing here knows Arrow. A position is checked against its end before every read, so malformed
bytes give an error number and never a read outside the buffer.

`batches` has a row per batch, columns as named by the constants below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import njit as _njit

    def compiled(function: F) -> F:
        made: F = _njit(function, cache=True, nogil=True)
        return made

except ImportError:  # the loop is then plain Python

    def compiled(function: F) -> F:
        return function


# Columns of `batches`: where the records begin and end, how many they are, what their deltas are added to, which
# timestamp all have (-1: each its own), and which offsets are wanted (first, and the one after the last; -1: all).
BEGIN, END, COUNT, BASE_OFFSET, BASE_TIME, FIXED_TIME, FIRST_WANTED, END_WANTED = range(8)
BATCH_COLUMNS = 8

OK, MALFORMED = 0, -1

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]


@compiled
def _varint(data: Bytes, at: int, end: int) -> tuple[Any, int]:
    """A zigzag varint and the position after it; position -1 if it does not end in time."""
    value = np.int64(0)
    shift = np.int64(0)
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= np.int64(byte & 127) << shift
        if byte < 128:
            return (value >> np.int64(1)) ^ -(value & np.int64(1)), at
        shift += 7
    return np.int64(0), -1


@compiled
def scan(
    data: Bytes,
    batches: Longs,
    offsets: Longs,
    times: Longs,
    rows_of: Ints,
    key_ends: Ints,
    key_there: Bools,
    keys: Bytes,
    value_ends: Ints,
    value_there: Bools,
    values: Bytes,
    header_counts: Ints,
    headers_at: Longs,
    record_ends: Longs,
) -> tuple[int, int, int, int]:
    """Fills one row per wanted record; (rows, bytes of keys, bytes of values, headers), or MALFORMED as the first.

    `rows_of[row]` is the batch it came from, `headers_at[row]` where its headers begin, `record_ends[row]` where it
    ends. Records do not overlap, so `keys` and `values` of the size of `data` are large enough.
    """
    row, key_at, value_at, header_total = 0, 0, 0, 0
    for number in range(len(batches)):
        batch = batches[number]
        at, batch_end = batch[BEGIN], batch[END]
        first, wanted_end = batch[FIRST_WANTED], batch[END_WANTED]
        for _ in range(batch[COUNT]):
            size, at = _varint(data, at, batch_end)
            if at < 0 or size < 1 or at + size > batch_end:
                return MALFORMED, 0, 0, 0
            end = at + size
            time_delta, at = _varint(data, at + 1, end)
            if at < 0:
                return MALFORMED, 0, 0, 0
            offset_delta, at = _varint(data, at, end)
            if at < 0:
                return MALFORMED, 0, 0, 0
            key_size, at = _varint(data, at, end)
            if at < 0 or key_size < -1 or key_size > end - at:
                return MALFORMED, 0, 0, 0
            key_begin = at
            if key_size > 0:
                at += key_size
            value_size, at = _varint(data, at, end)
            if at < 0 or value_size < -1 or value_size > end - at:
                return MALFORMED, 0, 0, 0
            value_begin = at
            if value_size > 0:
                at += value_size
            header_count, at = _varint(data, at, end)
            if at < 0 or header_count < 0 or header_count > end - at:
                return MALFORMED, 0, 0, 0
            offset = batch[BASE_OFFSET] + offset_delta
            if offset >= first and (wanted_end < 0 or offset < wanted_end):
                offsets[row] = offset
                times[row] = batch[FIXED_TIME] if batch[FIXED_TIME] >= 0 else batch[BASE_TIME] + time_delta
                rows_of[row] = number
                key_there[row] = key_size >= 0
                for index in range(key_size):
                    keys[key_at + index] = data[key_begin + index]
                key_at += max(key_size, 0)
                value_there[row] = value_size >= 0
                for index in range(value_size):
                    values[value_at + index] = data[value_begin + index]
                value_at += max(value_size, 0)
                header_counts[row] = header_count
                headers_at[row] = at
                record_ends[row] = end
                header_total += header_count
                row += 1
                key_ends[row] = key_at
                value_ends[row] = value_at
            at = end
    return row, key_at, value_at, header_total


@compiled
def scan_headers(
    data: Bytes,
    header_counts: Ints,
    headers_at: Longs,
    record_ends: Longs,
    name_ends: Ints,
    names: Bytes,
    value_ends: Ints,
    value_there: Bools,
    values: Bytes,
) -> tuple[int, int, int]:
    """The headers of all rows: (headers, bytes of names, bytes of values), or MALFORMED as the first."""
    header, name_at, value_at = 0, 0, 0
    for row in range(len(header_counts)):
        at, end = headers_at[row], record_ends[row]
        for _ in range(header_counts[row]):
            name_size, at = _varint(data, at, end)
            if at < 0 or name_size < 0 or name_size > end - at:
                return MALFORMED, 0, 0
            for index in range(name_size):
                names[name_at + index] = data[at + index]
            name_at += name_size
            at += name_size
            value_size, at = _varint(data, at, end)
            if at < 0 or value_size < -1 or value_size > end - at:
                return MALFORMED, 0, 0
            value_there[header] = value_size >= 0
            for index in range(value_size):
                values[value_at + index] = data[at + index]
            value_at += max(value_size, 0)
            at += max(value_size, 0)
            header += 1
            name_ends[header] = name_at
            value_ends[header] = value_at
    return header, name_at, value_at
