"""Protobuf's wire format: leaf functions of the compiled loop. Nothing is read at or behind an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, compiled, inlined
from ottla.columns.protobuf.ops import (
    BAD_TAG,
    BOOL,
    EIGHT,
    ENUM,
    FIXED32,
    FIXED64,
    FLOAT,
    FOUR,
    GROUP,
    GROUP_END,
    INT32,
    LONG_VARINT,
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
    Tables,
)
from ottla.columns.push import is_utf8, push_bytes, take
from ottla.columns.shape import BASE, DATA, DATA_COUNT, DATA_ROOM, Out

_MICROS = 1_000_000
_SECONDS_MAX = (2**63 - 1) // _MICROS - 1
_DIGITS_MAX = 11


@inlined
def read_varint(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """64 bits and the position after them."""
    value = np.int64(0)
    shift = np.int64(0)
    while at < end:
        byte = data[at]
        at += 1
        value |= np.int64(byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift >= 70:
            return np.int64(0), LONG_VARINT
    return np.int64(0), SHORT


@inlined
def read_size(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """A length that there are bytes for, and the position after it."""
    size, at = read_varint(data, at, end)
    if at >= 0 and (size < 0 or size > end - at):
        return np.int64(0), SHORT
    return size, at


@inlined
def pass_value(data: Bytes, at: Any, end: Any, wire: Any) -> Any:
    """The position after a value; of a group, after its tag (`pass_field` knows where groups end)."""
    if wire == VARINT:
        _, at = read_varint(data, at, end)
        return at
    if wire == EIGHT:
        return at + 8 if end - at >= 8 else SHORT
    if wire == FOUR:
        return at + 4 if end - at >= 4 else SHORT
    if wire == SIZED:
        size, at = read_size(data, at, end)
        return at + size if at >= 0 else at
    return at if wire in (GROUP, GROUP_END) else BAD_TAG


@compiled
def pass_field(data: Bytes, at: Any, end: Any, wire: Any) -> Any:
    """The position after a field that nobody wants, groups and all."""
    if wire == GROUP_END:
        return BAD_TAG
    at = pass_value(data, at, end, wire)
    depth = 1 if wire == GROUP else 0
    while at >= 0 and depth > 0:
        tag, at = read_varint(data, at, end)
        if at >= 0:
            inner = tag & 7
            if inner == GROUP:
                depth += 1
            elif inner == GROUP_END:
                depth -= 1
            at = pass_value(data, at, end, inner)
    return at


@compiled
def find(data: Bytes, at: Any, end: Any, number: Any, wire: Any) -> tuple[Any, Any]:
    """The last field of a number and wire type in a message: (its value's position or -1, why the message is bad)."""
    found = np.int64(-1)
    while at < end:
        tag, at = read_varint(data, at, end)
        if at < 0:
            return found, at
        if (tag >> np.int64(3)) & np.int64(0x1FFFFFFF) == number and tag & 7 == wire:
            found = np.int64(at)
        at = pass_field(data, at, end, tag & 7)
        if at < 0:
            return found, at
    return found, np.int64(0)


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


@compiled
def push_enum(tables: Tables, first: Any, count: Any, out: Out, column: Any, value: Any) -> Any:
    """Append the name of an enum's number; of one that has no name, the number. False without room."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) // 2
        if tables.symbols[middle, 0] < value:
            low = middle + 1
        else:
            high = middle
    if low < first + count and tables.symbols[low, 0] == value:
        begin, size = tables.symbols[low, 1], tables.symbols[low, 2]
        return push_bytes(out, column, tables.constants, begin, size) >= 0
    return push_number(out, column, value)


@inlined
def push_varint(kind: Any, a: Any, b: Any, tables: Tables, out: Out, column: Any, value: Any) -> Any:
    """Append what a varint is; False without room."""
    if kind == ENUM:
        return push_enum(tables, a, b, out, column, ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000)
    entry = take(out, column)
    if entry < 0:
        return False
    to = out.table[column, BASE] + entry
    if kind in (SINT32, SINT64):
        value = ((value >> np.int64(1)) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(value & np.int64(1))
    if kind in (INT32, SINT32):
        out.a32[to] = ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
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
    """Append 4 or 8 bytes as what they are; the position after them."""
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
def push_time(kind: Any, out: Out, column: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Append a Timestamp or Duration (the message from `at` to `end`) as microseconds; a negative answer is why not."""
    seconds_at, bad = find(data, at, end, 1, VARINT)
    if bad < 0:
        return bad
    nanos_at, _ = find(data, at, end, 2, VARINT)
    seconds, nanos = np.int64(0), np.int64(0)
    if seconds_at >= 0:
        seconds, _ = read_varint(data, seconds_at, end)
    if nanos_at >= 0:
        nanos, _ = read_varint(data, nanos_at, end)
        nanos = ((nanos & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    if seconds > _SECONDS_MAX or seconds < -_SECONDS_MAX:
        return TOO_LARGE
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    # Moments are cut downwards, spans towards zero, as Java does.
    micros = nanos // 1000 if kind == MOMENT or nanos >= 0 else -(-nanos // 1000)
    out.a64[out.table[column, BASE] + entry] = seconds * _MICROS + micros
    return end


@inlined
def push_value(
    kind: Any, wrapped: Any, a: Any, b: Any, tables: Tables, out: Out, column: Any, data: Bytes, at: Any, end: Any
) -> Any:
    """Append the value at a position; the position after it."""
    after = np.int64(-1)
    if wrapped:
        size, at = read_size(data, at, end)
        if at < 0:
            return at
        after = at + size
        wire = VARINT if kind <= ENUM else (SIZED if kind >= STRING else (EIGHT if kind < FLOAT else FOUR))
        inner, bad = find(data, at, after, 1, wire)
        if bad < 0:
            return bad
        end = after
        if inner < 0:
            data, at, end = tables.constants, np.int64(0), np.int64(16)
        else:
            at = inner
    if kind <= ENUM:
        value, at = read_varint(data, at, end)
        if at >= 0 and not push_varint(kind, a, b, tables, out, column, value):
            at = NO_ROOM
    elif kind < STRING:
        at = push_fixed(kind, out, column, data, at, end)
    else:
        size, at = read_size(data, at, end)
        if at < 0:
            return at
        if kind >= MOMENT:
            at = push_time(kind, out, column, data, at, at + size)
        elif kind == STRING and not is_utf8(data, at, size):
            at = NOT_UTF8
        elif push_bytes(out, column, data, at, size) < 0:
            at = NO_ROOM
        else:
            at = at + size
    return after if after >= 0 and at >= 0 else at
