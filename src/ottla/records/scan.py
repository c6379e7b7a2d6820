"""The loop over records, compiled by numba: turns the bytes of many batches into columns.

One source for both ways of running: without numba the same functions run as plain Python, much slower but with equal
results. The functions take and return arrays; nothing here uses Arrow. A position is checked against its end before
every read, so malformed bytes give an error number and never a read outside the buffer.

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
    from numba import types as _types
    from numba.core import cgutils as _cgutils
    from numba.extending import intrinsic as _intrinsic

    def compiled(function: F) -> F:
        made: F = _njit(function, cache=True, nogil=True)
        return made

    def _memcpy(typing: Any, to: Any, to_at: Any, source: Any, at: Any, size: Any) -> Any:
        """`to[to_at : to_at + size] = source[at : at + size]` for bytes, at the speed of memcpy. Checks nothing."""
        signature = _types.void(to, _types.int64, source, _types.int64, _types.int64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            places = [
                builder.gep(context.make_array(kind)(context, builder, array).data, [begin])
                for kind, array, begin in (
                    (signature.args[0], arguments[0], arguments[1]),
                    (signature.args[2], arguments[2], arguments[3]),
                )
            ]
            to_place, place = places
            _cgutils.raw_memcpy(builder, to_place, place, arguments[4], 1)  # type: ignore[no-untyped-call]
            return context.get_dummy_value()

        return signature, generate

    copy: Callable[..., None] = _intrinsic(_memcpy)

except ImportError:  # the loops are then plain Python

    def compiled(function: F) -> F:
        return function

    def _copy(to: Any, to_at: int, source: Any, at: int, size: int) -> None:
        """`to[to_at : to_at + size] = source[at : at + size]`."""
        to[to_at : to_at + size] = source[at : at + size]

    copy = _copy


# Columns of `batches`: where the records begin and end, their count, the base offset and base timestamp, the timestamp
# of all records (-1: each has its own), and the wanted offsets (the first, and the one after the last; -1: all).
BEGIN, END, COUNT, BASE_OFFSET, BASE_TIME, FIXED_TIME, FIRST_WANTED, END_WANTED = range(8)
BATCH_COLUMNS = 8

OK, MALFORMED = 0, -1

Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]


@compiled
def _varint(data: Bytes, at: int, end: int) -> tuple[Any, int]:
    """Read a zigzag varint: (value, position after it); the position is -1 if the varint does not end in time."""
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
def _frame(data: Bytes, at: int, batch_end: int) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Parse one record: (end, time delta, offset delta, key at, key size, value at, value size, headers at, headers).

    An end of -1 means that the record is malformed; a size of -1 means null.
    """
    bad = (-1, 0, 0, 0, 0, 0, 0, 0, 0)
    size, at = _varint(data, at, batch_end)
    if at < 0 or size < 1 or size > batch_end - at:
        return bad
    end = at + size
    time_delta, at = _varint(data, at + 1, end)  # skips the attributes, which are unused
    if at < 0:
        return bad
    offset_delta, at = _varint(data, at, end)
    if at < 0:
        return bad
    key_size, key_at = _varint(data, at, end)
    if key_at < 0 or key_size < -1 or key_size > end - key_at:
        return bad
    value_size, value_at = _varint(data, key_at + max(key_size, 0), end)
    if value_at < 0 or value_size < -1 or value_size > end - value_at:
        return bad
    headers, headers_at = _varint(data, value_at + max(value_size, 0), end)
    if headers_at < 0 or headers < 0 or headers > end - headers_at:
        return bad
    return end, time_delta, offset_delta, key_at, key_size, value_at, value_size, headers_at, headers


@compiled
def scan(
    data: Bytes,
    batches: Longs,
    with_keys: bool,
    with_values: bool,
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
    """Fill one row per wanted record; return (rows, bytes of keys, bytes of values, headers), or MALFORMED as the
    first.

    `rows_of[row]` is the batch of the record, `headers_at[row]` where its headers begin, `record_ends[row]` where it
    ends. Keys and values that are not wanted become null. Records do not overlap, so `keys` and `values` of the size of
    `data` are large enough.
    """
    row, key_end, value_end, header_total = 0, 0, 0, 0
    for number in range(len(batches)):
        batch = batches[number]
        at, first, wanted_end, fixed_time = batch[BEGIN], batch[FIRST_WANTED], batch[END_WANTED], batch[FIXED_TIME]
        for _ in range(batch[COUNT]):
            at, time, offset, key_at, key_size, value_at, value_size, header_at, headers = _frame(data, at, batch[END])
            if at < 0:
                return MALFORMED, 0, 0, 0
            offset += batch[BASE_OFFSET]
            if offset < first or (wanted_end >= 0 and offset >= wanted_end):
                continue
            offsets[row], rows_of[row] = offset, number
            times[row] = fixed_time if fixed_time >= 0 else batch[BASE_TIME] + time
            if not with_keys:
                key_size = -1
            if not with_values:
                value_size = -1
            key_there[row], value_there[row] = key_size >= 0, value_size >= 0
            if key_size > 0:
                copy(keys, key_end, data, key_at, key_size)
                key_end += key_size
            if value_size > 0:
                copy(values, value_end, data, value_at, value_size)
                value_end += value_size
            header_counts[row], headers_at[row], record_ends[row] = headers, header_at, at
            header_total += headers
            row += 1
            key_ends[row], value_ends[row] = key_end, value_end
    return row, key_end, value_end, header_total


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
    """Read the headers of all rows; return (headers, bytes of names, bytes of values), or MALFORMED as the first."""
    header, name_at, value_at = 0, 0, 0
    for row in range(len(header_counts)):
        at, end = headers_at[row], record_ends[row]
        for _ in range(header_counts[row]):
            name_size, at = _varint(data, at, end)
            if at < 0 or name_size < 0 or name_size > end - at:
                return MALFORMED, 0, 0
            copy(names, name_at, data, at, name_size)
            name_at += name_size
            at += name_size
            value_size, at = _varint(data, at, end)
            if at < 0 or value_size < -1 or value_size > end - at:
                return MALFORMED, 0, 0
            value_there[header] = value_size >= 0
            if value_size > 0:
                copy(values, value_at, data, at, value_size)
                value_at += value_size
                at += value_size
            header += 1
            name_ends[header] = name_at
            value_ends[header] = value_at
    return header, name_at, value_at
