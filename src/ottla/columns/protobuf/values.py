"""Functions that append Protobuf values to columns: leaf functions of the compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.protobuf.ops import (
    BOOL,
    COLUMN,
    EIGHT,
    ENUM,
    FIXED32,
    FIXED64,
    FLOAT,
    FOUR,
    INT32,
    KIND,
    MOMENT,
    NO_ROOM,
    NOT_UTF8,
    SFIXED32,
    SHORT,
    SINT32,
    SINT64,
    SIZED,
    STRING,
    TOO_LARGE,
    UINT32,
    UINT64,
    VARINT,
    A,
    B,
    Tables,
)
from ottla.columns.protobuf.wire import find, read_size, read_varint
from ottla.columns.push import is_utf8, push_bytes, take
from ottla.columns.shape import BASE, DATA, DATA_COUNT, DATA_ROOM, Out

_MICROS = 1_000_000
_MICROS_MAX = 2**63 - 1
_SECONDS_MAX = _MICROS_MAX // _MICROS
_DIGITS_MAX = 11


@compiled
def push_number(out: Out, column: Any, value: Any) -> Any:
    """Append a number as text; False without room."""
    if out.table[column, DATA_COUNT] + _DIGITS_MAX > out.table[column, DATA_ROOM]:
        return False
    entry = take(out, column)
    if entry < 0:
        return False
    digits, left = 1, abs(value)
    while left >= 10:
        left //= 10
        digits += 1
    begin = out.table[column, DATA_COUNT]
    size = digits + (1 if value < 0 else 0)
    to = out.table[column, DATA] + begin
    if value < 0:
        out.a8[to] = 45
    left = abs(value)
    for place in range(digits):
        out.a8[to + size - 1 - place] = 48 + left % 10
        left //= 10
    out.table[column, DATA_COUNT] = begin + size
    out.a32[out.table[column, BASE] + entry + 1] = begin + size
    return True


@inlined
def low32(value: Any) -> Any:
    """Return the lower 32 bits as a signed number."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@compiled
def symbol_of(tables: Tables, first: Any, count: Any, value: Any) -> Any:
    """Return the row of the symbol of an enum's number; -1 if it has no name."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) // 2
        if tables.symbols[middle, 0] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < first + count and tables.symbols[low, 0] == value else np.int64(-1)


@compiled
def push_enum(tables: Tables, first: Any, count: Any, out: Out, column: Any, value: Any) -> Any:
    """Append the name of an enum's number; the number itself if it has no name. False without room."""
    symbol = symbol_of(tables, first, count, value)
    if symbol >= 0:
        begin, size = tables.symbols[symbol, 1], tables.symbols[symbol, 2]
        return push_bytes(out, column, tables.constants, begin, size) >= 0
    return push_number(out, column, value)


@inlined
def push_varint(kind: Any, a: Any, b: Any, tables: Tables, out: Out, column: Any, value: Any) -> Any:
    """Append a varint as a value of its kind; False without room."""
    if kind == ENUM:
        return push_enum(tables, a, b, out, column, low32(value))
    entry = take(out, column)
    if entry < 0:
        return False
    to = out.table[column, BASE] + entry
    if kind == INT32:
        out.a32[to] = low32(value)
    elif kind == SINT32:  # only its lower 32 bits are decoded, because the rest of a longer one would change the number
        value = value & np.int64(0xFFFFFFFF)
        out.a32[to] = (value >> np.int64(1)) ^ -(value & np.int64(1))
    elif kind == SINT64:
        out.a64[to] = ((value >> np.int64(1)) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(value & np.int64(1))
    elif kind == UINT32:
        out.a64[to] = value & np.int64(0xFFFFFFFF)
    elif kind == UINT64:
        out.a64[2 * to], out.a64[2 * to + 1] = value, 0
    elif kind == BOOL:
        out.a8[to] = 1 if value != 0 else 0
    else:
        out.a64[to] = value
    return True


@inlined
def push_fixed(kind: Any, out: Out, column: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Append 4 or 8 bytes as a value of their kind; return the position after them."""
    size = 4 if kind in (FLOAT, FIXED32, SFIXED32) else 8
    if end - at < size:
        return SHORT
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    width = size
    if kind == FIXED64:
        width = 16
    elif kind == FIXED32:
        width = 8
    to = (out.table[column, BASE] + entry) * width
    for index in range(size):
        out.a8[to + index] = data[at + index]
    for index in range(size, width):
        out.a8[to + index] = 0
    return at + size


@compiled
def push_time(out: Out, column: Any, data: Bytes, at: Any, end: Any, groups: Longs, depth: Any) -> Any:
    """Append a Timestamp or Duration (the message from `at` to `end`) as microseconds; a negative result is why it is
    bad.
    """
    seconds_at, bad = find(data, at, end, 1, VARINT, groups, depth)
    if bad < 0:
        return bad
    nanos_at, _ = find(data, at, end, 2, VARINT, groups, depth)
    seconds, nanos = np.int64(0), np.int64(0)
    if seconds_at >= 0:
        seconds, _ = read_varint(data, seconds_at, end)
    if nanos_at >= 0:
        nanos, _ = read_varint(data, nanos_at, end)
        nanos = low32(nanos)
    # Parts of a microsecond are cut off towards zero, as Java does.
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    if seconds > _SECONDS_MAX or seconds < -_SECONDS_MAX:
        return TOO_LARGE
    whole = seconds * _MICROS
    if (micros > 0 and whole > _MICROS_MAX - micros) or (micros < 0 and whole < -_MICROS_MAX - 1 - micros):
        return TOO_LARGE
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    out.a64[out.table[column, BASE] + entry] = whole + micros
    return end


@inlined
def push_value(
    tables: Tables, row: Any, out: Out, data: Bytes, at: Any, end: Any, wrapped: Any, groups: Longs, depth: Any
) -> Any:
    """Append the value of a field at a position; return the position after it. `depth`: how much
    deeper groups may be.
    """
    fields = tables.fields
    kind, column = fields[row, KIND], fields[row, COLUMN]
    after = np.int64(-1)
    if wrapped:
        size, at = read_size(data, at, end)
        if at < 0:
            return at
        after = at + size
        wire = VARINT if kind <= ENUM else (SIZED if kind >= STRING else (EIGHT if kind < FLOAT else FOUR))
        inner, bad = find(data, at, after, 1, wire, groups, depth - 1)
        if bad < 0:
            return bad
        end = after
        if inner < 0:
            data, at, end = tables.constants, np.int64(0), np.int64(16)
        else:
            at = inner
    if kind <= ENUM:
        value, at = read_varint(data, at, end)
        if at >= 0 and not push_varint(kind, fields[row, A], fields[row, B], tables, out, column, value):
            at = NO_ROOM
    elif kind < STRING:
        at = push_fixed(kind, out, column, data, at, end)
    else:
        size, at = read_size(data, at, end)
        if at < 0:
            return at
        if kind >= MOMENT:
            at = push_time(out, column, data, at, at + size, groups, depth - 1)
        elif kind == STRING and not is_utf8(data, at, size):
            at = NOT_UTF8
        elif push_bytes(out, column, data, at, size) < 0:
            at = NO_ROOM
        else:
            at = at + size
    return after if after >= 0 and at >= 0 else at
