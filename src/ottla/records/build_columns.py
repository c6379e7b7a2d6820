"""Builds record batches from columns: loops, compiled by numba, that turn Arrow's buffers into encoded records.

One source for both ways of running, as in `records.scan`: without numba the same functions run as plain Python. The
functions take and return arrays; nothing here uses Arrow. A column consists of its bytes, the end of each row (one
number more than rows) and the rows that are not null (an empty array: no row is null).

Rules:
- A record's partition is the given one, else the one that Java's producer chooses by the hash of its key, else (no key)
  the current one: after `run_bytes` the next available partition becomes the current one.
- Records of one partition keep their order. A batch ends before it would exceed `batch_bytes`, but has at least one
  record.
- All records of a call have the timestamp of the batch, so that every time delta is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ottla.records.scan import Bools, Bytes, Ints, Longs, compiled, copy

# The most bytes that a record takes besides its content: varints of its size, time, offset, key, value and header
# count.
RECORD_OVERHEAD_BYTES = 21
HEADER_OVERHEAD_BYTES = 10
# Columns of the table that `encode` fills: one row per batch.
PARTITION, BEGIN, END, COUNT = range(4)
BATCH_COLUMNS = 4

_SEED, _M, _MASK = 0x9747B28C, 0x5BD1E995, 0xFFFF_FFFF


def frozen(array: Any) -> Any:
    """Make an array read-only.

    Arrow's buffers are read-only, and numba compiles a loop for each kind of arguments: so all columns are to be of
    this kind.
    """
    array.setflags(write=False)
    return array


class InputColumn(NamedTuple):
    """Bytes per row, in Arrow's layout; all three arrays are `frozen`."""

    data: Bytes
    ends: Ints
    there: Bools


class HeaderColumns(NamedTuple):
    """The headers of all rows: the end of each row's headers (rows + 1 numbers), their names and their contents."""

    ends: Ints
    names: InputColumn
    contents: InputColumn


NO_BYTES: Bytes = frozen(np.zeros(0, np.uint8))
ALL_THERE: Bools = frozen(np.zeros(0, np.bool_))
NO_PARTITIONS: Ints = frozen(np.zeros(0, np.int32))
_NO_COLUMN = InputColumn(NO_BYTES, frozen(np.zeros(1, np.int32)), ALL_THERE)
NO_HEADERS = HeaderColumns(NO_PARTITIONS, _NO_COLUMN, _NO_COLUMN)


def missing(rows: int) -> InputColumn:
    """Return a column of nulls."""
    return InputColumn(NO_BYTES, frozen(np.zeros(rows + 1, np.int32)), frozen(np.zeros(rows, np.bool_)))


@compiled
def murmur2(data: Bytes, begin: int, end: int) -> int:
    """Return the key hash of Kafka's Java client; numbers are cut to 32 bits, so that uncompiled code agrees."""
    size = np.int64(end) - np.int64(begin)
    h = np.int64((_SEED ^ size) & _MASK)
    at = begin
    for _ in range(size >> 2):
        k = (
            np.int64(data[at])
            | np.int64(data[at + 1]) << 8
            | np.int64(data[at + 2]) << 16
            | np.int64(data[at + 3]) << 24
        )
        k = (k * _M) & _MASK
        k = ((k ^ (k >> 24)) * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
        at += 4
    if at < end:
        rest = np.int64(0)
        shift = 0
        while at < end:
            rest |= np.int64(data[at]) << shift
            shift += 8
            at += 1
        h = ((h ^ rest) * _M) & _MASK
    h ^= h >> 13
    h = (h * _M) & _MASK
    h ^= h >> 15
    return h  # type: ignore[return-value]  # a number like any other


@compiled
def choose(
    key_data: Bytes,
    key_ends: Ints,
    key_there: Bools,
    value_ends: Ints,
    given: Ints,
    partition_count: int,
    available: Ints,
    turn: int,
    left_bytes: int,
    run_bytes: int,
    chosen: Ints,
) -> tuple[int, int]:
    """Fill `chosen` with the partition of every row; `given[row]` is -1 if the row names none, and `given` is empty if
    no row does.

    Returns the current index into `available` for records without a key, and how many more bytes go there.
    """
    for row in range(len(chosen)):
        if len(given) > 0 and given[row] >= 0:
            chosen[row] = given[row]
        elif len(key_there) == 0 or key_there[row]:
            hashed = murmur2(key_data, key_ends[row], key_ends[row + 1]) & 0x7FFF_FFFF
            chosen[row] = hashed % partition_count
        else:
            if left_bytes <= 0:
                turn = (turn + 1) % len(available)
                left_bytes = run_bytes
            chosen[row] = available[turn]
            left_bytes -= value_ends[row + 1] - value_ends[row] + RECORD_OVERHEAD_BYTES
    return turn, left_bytes


@compiled
def _put_varint(out: Bytes, at: int, number: int) -> int:
    """Write the zigzag varint of a number that is -1 or more; return the position after it."""
    value = 1 if number < 0 else number << 1
    while value > 127:
        out[at] = (value & 127) | 128
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@compiled
def _varint_bytes(number: int) -> int:
    value = 1 if number < 0 else number << 1
    size = 1
    while value > 127:
        value >>= 7
        size += 1
    return size


@compiled
def _size(ends: Ints, there: Bools, row: int) -> Any:
    """Return the size of a field in bytes; -1 if it is null."""
    return np.int64(ends[row + 1]) - np.int64(ends[row]) if len(there) == 0 or there[row] else np.int64(-1)


@compiled
def in_order(chosen: Ints, partition_count: int) -> tuple[Any, Any]:
    """Sort rows by partition, keeping their order within each: (rows, where each partition's rows begin and end)."""
    begins = np.zeros(partition_count + 1, np.int64)
    for row in range(len(chosen)):
        begins[chosen[row] + 1] += 1
    for partition in range(partition_count):
        begins[partition + 1] += begins[partition]
    filled = begins.copy()
    rows = np.empty(len(chosen), np.int64)
    for row in range(len(chosen)):
        partition = chosen[row]
        rows[filled[partition]] = row
        filled[partition] += 1
    return rows, begins


@compiled
def _headers_bytes(headers: HeaderColumns, row: int) -> Any:
    """Return the encoded size of a row's headers, with their count."""
    size = _varint_bytes(headers.ends[row + 1] - headers.ends[row])
    for header in range(headers.ends[row], headers.ends[row + 1]):
        name = _size(headers.names.ends, headers.names.there, header)
        content = _size(headers.contents.ends, headers.contents.there, header)
        size += _varint_bytes(name) + name + _varint_bytes(content) + max(content, 0)
    return size


@compiled
def _put_headers(out: Bytes, at: int, headers: HeaderColumns, row: int) -> int:
    names, contents = headers.names, headers.contents
    at = _put_varint(out, at, headers.ends[row + 1] - headers.ends[row])
    for header in range(headers.ends[row], headers.ends[row + 1]):
        name = _size(names.ends, names.there, header)
        at = _put_varint(out, at, name)
        copy(out, at, names.data, np.int64(names.ends[header]), name)
        content = _size(contents.ends, contents.there, header)
        at = _put_varint(out, at + name, content)
        if content > 0:
            copy(out, at, contents.data, np.int64(contents.ends[header]), content)
            at += content
    return at


@compiled
def encode(
    keys: InputColumn,
    values: InputColumn,
    headers: HeaderColumns,
    rows: Longs,
    begins: Longs,
    batch_bytes: int,
    out: Bytes,
    table: Longs,
) -> int:
    """Write all records into `out`, partition by partition, and a row into `table` for every batch; return the number
    of batches.

    The loop is written out here, because with functions over whole columns it takes three times as long.
    """
    key_data, key_ends, key_there = keys
    value_data, value_ends, value_there = values
    has_headers = len(headers.ends) > 0
    at, batches = 0, 0
    for partition in range(len(begins) - 1):
        begin, count = at, 0
        for number in range(begins[partition], begins[partition + 1]):
            row = rows[number]
            key, value = _size(key_ends, key_there, row), _size(value_ends, value_there, row)
            # Attributes, time, the fields with their sizes, and the headers; but not the record's offset delta.
            body = 2 + _varint_bytes(key) + max(key, 0) + _varint_bytes(value) + max(value, 0)
            body += _headers_bytes(headers, row) if has_headers else 1
            if count > 0 and at - begin + body + RECORD_OVERHEAD_BYTES > batch_bytes:
                batches = _note(table, batches, partition, begin, at, count)
                begin, count = at, 0
            at = _put_varint(out, at, body + _varint_bytes(count))
            out[at] = 0  # attributes, which are unused
            out[at + 1] = 0  # the time delta: the record has the time of the batch
            at = _put_varint(out, at + 2, count)
            at = _put_varint(out, at, key)
            if key > 0:
                copy(out, at, key_data, np.int64(key_ends[row]), key)
                at += key
            at = _put_varint(out, at, value)
            if value > 0:
                copy(out, at, value_data, np.int64(value_ends[row]), value)
                at += value
            if has_headers:
                at = _put_headers(out, at, headers, row)
            else:
                out[at] = 0
                at += 1
            count += 1
        if count > 0:
            batches = _note(table, batches, partition, begin, at, count)
    return batches


@compiled
def _note(table: Longs, batches: int, partition: int, begin: int, end: int, count: int) -> int:
    """Add a batch to the table; return the number of batches."""
    table[batches, PARTITION], table[batches, BEGIN] = partition, begin
    table[batches, END], table[batches, COUNT] = end, count
    return batches + 1


class EncodedRows(NamedTuple):
    """Encoded records, and how they form batches: (partition, begin, end, count) per row of `table`."""

    data: Bytes
    table: Longs


def encode_rows(
    keys: InputColumn,
    values: InputColumn,
    headers: HeaderColumns,
    chosen: Ints,
    partition_count: int,
    batch_bytes: int,
    room: Bytes | None = None,
) -> EncodedRows:
    """Encode all rows in batches for their chosen partitions; into `room` if that is large enough."""
    count = len(chosen)
    size_bytes = count * RECORD_OVERHEAD_BYTES + content_bytes(keys, values, headers)
    if len(headers.ends):
        size_bytes += int(headers.ends[-1] - headers.ends[0]) * HEADER_OVERHEAD_BYTES
    rows, begins = in_order(chosen, partition_count)
    out = room if room is not None and len(room) >= size_bytes else np.empty(size_bytes, np.uint8)
    # Two neighbouring batches of one partition are together larger than `batch_bytes`.
    batches_max = partition_count + 2 * size_bytes // max(batch_bytes - RECORD_OVERHEAD_BYTES, 1) + 1
    table = np.empty((min(count, batches_max), BATCH_COLUMNS), np.int64)
    made = encode(keys, values, headers, rows, begins, batch_bytes, out, table)
    return EncodedRows(out, table[:made])


def content_bytes(keys: InputColumn, values: InputColumn, headers: HeaderColumns) -> int:
    """Return the bytes of keys, values and headers of all rows, without any overhead."""
    size_bytes = _span(keys) + _span(values)
    return size_bytes + _span(headers.names) + _span(headers.contents) if len(headers.ends) else size_bytes


def _span(column: InputColumn) -> int:
    return int(column.ends[-1] - column.ends[0])
