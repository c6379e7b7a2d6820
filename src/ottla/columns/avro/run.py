"""The loop that runs a program over values: bytes in, columns out.

A position is checked against its end before every read, and a negative position is the reason why the value is bad; so
malformed bytes make only their own row bad, and nothing outside the value is read. `leaf` reads values without
structure, `run` the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.avro.ops import (
    BLOCK,
    BOOLEAN,
    BRANCH,
    CONSTANT,
    CONSTANT_END,
    DECIMAL,
    DONE,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT_TO_DOUBLE,
    GO,
    INT,
    INT_BYTES,
    LIST_BEGIN,
    LONG,
    LONG_TO_DOUBLE,
    LONG_TO_FLOAT,
    LONG_VARINT,
    NEGATIVE,
    NO_BRANCH,
    NO_ROOM,
    NO_SYMBOL,
    NOT_BOOLEAN,
    NOT_UTF8,
    NULLABLE,
    NULLS,
    OP,
    RESOLVE,
    SHORT,
    SKIP_FIXED,
    SKIP_LONG,
    STRING,
    STRUCT_BEGIN,
    TIME,
    TOO_LARGE,
    TOO_MANY,
    A,
    AvroProgramCode,
    B,
)
from ottla.columns.avro.ops import COLUMN as COL
from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.payloads import Payloads
from ottla.columns.push import is_utf8, push_bytes, push_null, take, undo
from ottla.columns.shape import AFTER, BASE, COUNT, Out
from ottla.model.limits import ITEMS_OF_NO_SIZE_MAX

_LOWEST = -(2**63)
_DAY_MICROS = 86_400_000_000


@inlined
def varint(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read a zigzag varint; return it and the position after it."""
    value = np.int64(0)
    shift = np.int64(0)
    while at < end:
        byte = data[at]
        at += 1
        value |= np.int64(byte & 127) << shift
        if byte < 128:
            return ((value >> np.int64(1)) & np.int64(0x7FFFFFFFFFFFFFFF)) ^ -(value & np.int64(1)), at
        shift += 7
        if shift >= 70:
            return np.int64(0), LONG_VARINT
    return np.int64(0), SHORT


@inlined
def choice(data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """Read the number of a branch or symbol; return it and the position after it."""
    value, after = varint(data, at, end)
    if after - at >= INT_BYTES:
        if after - at > INT_BYTES:
            after = LONG_VARINT
        elif value < -(2**31) or value >= 2**31:
            after = TOO_LARGE
    return value, after


@inlined
def number(op: Any, a: Any, b: Any, out: Out, column: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Read INT, LONG, TIME, and LONG as float or double; return the position after it."""
    begin = at
    value, at = varint(data, at, end)
    if at < 0:
        return at
    if a < 0:
        if at - begin > INT_BYTES:
            return LONG_VARINT
        if value < -(2**31) or value >= 2**31:
            return TOO_LARGE
        a = -a
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    to = out.table[column, BASE] + entry
    if op == INT:
        out.a32[to] = value
    elif op == LONG:
        if a != 1:
            if value > b or value < -b:
                return TOO_LARGE
            value *= a
        out.a64[to] = value
    elif op == TIME:
        if value < 0 or value >= _DAY_MICROS:
            return TOO_LARGE
        out.a64[to] = value * 1000
    elif op == LONG_TO_FLOAT:
        out.f32[to] = np.float32(value)
    else:
        out.f64[to] = np.float64(value)
    return at


@inlined
def text(op: Any, a: Any, out: Out, column: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Read STRING, BYTES, FIXED; return the position after it."""
    size = a
    if op != FIXED:
        size, at = varint(data, at, end)
        if at < 0:
            return at
        if size < 0:
            return NEGATIVE
    if size > end - at:
        return SHORT
    if op == STRING and not is_utf8(data, at, size):
        return NOT_UTF8
    if push_bytes(out, column, data, at, size) < 0:
        return NO_ROOM
    return at + size


@inlined
def decimal(out: Out, column: Any, limits: Longs, row: Any, size: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Read a big-endian number as 128 bits, if it is within the limits; return the position after it."""
    if size < 0:
        size, at = varint(data, at, end)
        if at < 0:
            return at
        if size < 0:
            return NEGATIVE
    if size > end - at:
        return SHORT
    if size == 0:
        return TOO_LARGE
    sign = np.int64(-1) if data[at] >= 128 else np.int64(0)
    high, low = sign, sign
    for index in range(size):
        if index < size - 16 and data[at + index] != (sign & 255):
            return TOO_LARGE
        high = (high << np.int64(8)) | ((low >> np.int64(56)) & np.int64(255))
        low = (low << np.int64(8)) | np.int64(data[at + index])
    if (high < 0) != (sign < 0):
        return TOO_LARGE
    flip = np.int64(_LOWEST)
    most, most_low, least, least_low = limits[row, 0], limits[row, 1], limits[row, 2], limits[row, 3]
    if high > most or (high == most and (low ^ flip) > (most_low ^ flip)):
        return TOO_LARGE
    if high < least or (high == least and (low ^ flip) < (least_low ^ flip)):
        return TOO_LARGE
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    to = 2 * (out.table[column, BASE] + entry)
    out.a64[to], out.a64[to + 1] = low, high
    return at + size


@inlined
def plain(op: Any, a: Any, b: Any, code: AvroProgramCode, out: Out, column: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Read DOUBLE, FLOAT, BOOLEAN, ENUM; return the position after it."""
    if op == ENUM:
        value, at = choice(data, at, end)
        if at < 0:
            return at
        if value < 0 or value >= b or code.symbols[a + value, 1] < 0:
            return NO_SYMBOL
        begin, length = code.symbols[a + value, 0], code.symbols[a + value, 1]
        return at if push_bytes(out, column, code.constants, begin, length) >= 0 else NO_ROOM
    size = 8 if op == DOUBLE else (1 if op == BOOLEAN else 4)
    if size > end - at:
        return SHORT
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    to = (out.table[column, BASE] + entry) * size
    if op == BOOLEAN:
        if data[at] > 1:
            return NOT_BOOLEAN
        out.a8[to] = data[at]
    elif op == FLOAT_TO_DOUBLE:
        # The four bytes become a float in the entry's own memory, which then gets the double.
        for index in range(4):
            out.a8[2 * to + index] = data[at + index]
        out.f64[to // 4] = np.float64(out.f32[to // 2])
    else:
        for index in range(size):
            out.a8[to + index] = data[at + index]
    return at + size


@inlined
def passed(op: Any, a: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Return the position after a value that is skipped."""
    size = a
    if op != SKIP_FIXED:
        begin = at
        size, at = varint(data, at, end)
        if op == SKIP_LONG and at - begin > a:
            return LONG_VARINT
        if at < 0 or op == SKIP_LONG:
            return at
        if size < 0:
            return NEGATIVE
    return at + size if size <= end - at else SHORT


@inlined
def block(data: Bytes, at: Any, end: Any, least: Any, free: Any, skipping: Any) -> tuple[Any, Any, Any]:
    """Read the header of the next block of a list: (items, position, items of size zero so far). No items: the list is
    over.
    """
    while True:
        count, at = varint(data, at, end)
        if at < 0 or count == 0:
            return np.int64(0), at, free
        if count < 0:
            size, at = varint(data, at, end)  # size of the block, for readers that skip it
            if at < 0:
                return np.int64(0), at, free
            if skipping:
                if size < 0 or size > end - at:
                    return np.int64(0), SHORT, free
                at += size
                continue
            if count == _LOWEST:
                return np.int64(0), TOO_MANY, free
            count = -count
        if least > 0 and count > (end - at) // least:
            return np.int64(0), TOO_MANY, free
        if least == 0:
            free += min(count, ITEMS_OF_NO_SIZE_MAX + 1)
            if free > ITEMS_OF_NO_SIZE_MAX:
                return np.int64(0), TOO_MANY, free
        return count, at, free


@inlined
def leaf(op: Any, a: Any, b: Any, code: AvroProgramCode, out: Out, column: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Run one instruction without structure; return the position after its value."""
    if op <= LONG_TO_DOUBLE:
        return number(op, a, b, out, column, data, at, end)
    if op <= FIXED:
        return text(op, a, out, column, data, at, end)
    if op <= ENUM:
        return plain(op, a, b, code, out, column, data, at, end)
    if op == DECIMAL:
        return decimal(out, column, code.limits, a, b, data, at, end)
    return passed(op, a, data, at, end)


@inlined
def one(code: AvroProgramCode, values: Bytes, at: Any, end: Any, out: Out, stack: Longs) -> tuple[Any, Any]:
    """Read one value; return the position after it (or why it is bad), and the last instruction."""
    pc, level, free, data, table = 0, 0, np.int64(0), values, out.table
    value_at, value_end = at, end
    while True:
        op, column, a, b = code.lines[pc, OP], code.lines[pc, COL], code.lines[pc, A], code.lines[pc, B]
        after = pc + 1
        if op < NULLABLE:
            at = leaf(op, a, b, code, out, column, data, at, end)
        elif op == NULLABLE:
            branch, at = choice(data, at, end)
            if at >= 0 and branch == a:
                at = at if push_null(out, column, table[column, AFTER]) else NO_ROOM
                after = b
            elif at >= 0 and branch != 1 - a:
                at = NO_BRANCH
        elif op in (STRUCT_BEGIN, LIST_BEGIN):
            if column >= 0 and take(out, column) < 0:
                at = NO_ROOM
            elif op == LIST_BEGIN:
                level += 1
                stack[level] = 0
        elif op == BLOCK:
            if stack[level] == 0:
                stack[level], at, free = block(data, at, end, b, free, column < 0)
            if stack[level] > 0:
                stack[level] -= 1
            elif at >= 0:
                if column >= 0:
                    out.a32[table[column, BASE] + table[column, COUNT]] = table[column + 1, COUNT]
                level, after = level - 1, a
        elif op == DONE:
            return at, pc
        elif op == GO:
            after = a
        elif op == BRANCH:
            branch, at = choice(data, at, end)
            if at >= 0 and (branch < 0 or branch >= b):
                at = NO_BRANCH
            elif at >= 0:
                after = code.jumps[a + branch]
        elif op == NULLS:
            at = at if push_null(out, column, a) else NO_ROOM
        elif op == CONSTANT:
            value_at, value_end, data, at, end = at, end, code.constants, a, b
        elif op == CONSTANT_END:
            at, end, data = value_at, value_end, values
        else:
            at = RESOLVE
        if at < 0:
            return at, pc
        pc = after


@compiled
def run(
    code: AvroProgramCode, given: Payloads, out: Out, stack: Longs, row: int, outcomes: Longs, places: Longs
) -> Any:
    """Read all values from `row` on; return the row that found no room (all rows before it are complete), or the row
    count.

    `outcomes` gets the reason of bad rows, `places` the instruction that failed.
    """
    for index in range(row, len(given.begins)):
        outcome, place = np.int64(0), 0
        there = given.there[index]
        if there:
            at, end = given.begins[index], given.ends[index]
            outcome = np.int64(SHORT)
            if at <= end:
                outcome, place = one(code, given.data, at, end, out, stack)
        if outcome == NO_ROOM:
            return index
        if outcome < 0:
            undo(out, index)
            outcomes[index], places[index] = outcome, place
        if (outcome < 0 or not there) and not push_null(out, 0, len(out.table)):
            return index
    return len(given.begins)
