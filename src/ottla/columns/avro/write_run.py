"""The loop that runs a program over columns: entries in, bytes out.

Room is checked before every write; a negative position says why a row cannot be written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.avro.write_ops import (
    BOOLEAN,
    BYTES,
    CONSTANT,
    DECIMAL,
    DONE,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    GO,
    IF_NULL,
    INT,
    IS_NULL,
    LIST,
    LONG,
    MEMBERS,
    NEXT,
    NO_MEMBER,
    NO_ROOM,
    NO_SYMBOL,
    OP,
    OPTIONAL,
    REQUIRED,
    TOO_LARGE,
    WRONG_SIZE,
    A,
    B,
    WriteCode,
)
from ottla.columns.avro.write_ops import COLUMN as COL
from ottla.columns.input_columns import BASE, DATA, VALID, InputBuffers
from ottla.columns.loops import Bytes, Ints, Longs, compiled, inlined

_VARINT_BYTES = 10


@inlined
def put_varint(to: Bytes, at: Any, value: Any) -> Any:
    """Write a number; there is room for the longest."""
    left = (value << np.int64(1)) ^ (value >> np.int64(63))
    while left < 0 or left > 127:
        to[at] = (left & np.int64(127)) | np.int64(128)
        left = (left >> np.int64(7)) & np.int64(0x01FFFFFFFFFFFFFF)
        at += 1
    to[at] = left
    return at + 1


@inlined
def put_bytes(to: Bytes, at: Any, source: Bytes, begin: Any, size: Any, sized: Any) -> Any:
    """Write bytes, after their length if `sized` is set."""
    if len(to) - at < size + _VARINT_BYTES:
        return NO_ROOM
    if sized:
        at = put_varint(to, at, np.int64(size))
    for index in range(size):
        to[at + index] = source[begin + index]
    return at + size


@inlined
def put_decimal(to: Bytes, at: Any, low: Any, high: Any, size: Any) -> Any:
    """Write 128 bits, big-endian: in `size` bytes, or (-1) in as few as hold it, after a length."""
    sign = high >> np.int64(63)
    needed = 16
    while needed > 1:
        top = _byte(low, high, needed - 1)
        below = _byte(low, high, needed - 2)
        if top != (sign & 255) or (below >= 128) != (sign < 0):
            break
        needed -= 1
    if size >= 0 and needed > size:
        return TOO_LARGE
    if len(to) - at < max(size, 16) + _VARINT_BYTES:
        return NO_ROOM
    if size < 0:
        at = put_varint(to, at, np.int64(needed))
        size = needed
    for index in range(size):
        place = size - 1 - index
        to[at + index] = _byte(low, high, place) if place < 16 else sign & 255
    return at + size


@inlined
def _byte(low: Any, high: Any, place: Any) -> Any:
    """Return the byte of 128 bits at a place, counted from the lowest."""
    if place >= 8:
        return (high >> np.int64(8 * (place - 8))) & np.int64(255)
    return (low >> np.int64(8 * place)) & np.int64(255)


@inlined
def put_symbol(
    to: Bytes, at: Any, source: Bytes, begin: Any, size: Any, code: WriteCode, first: Any, count: Any
) -> Any:
    """Write the number of a symbol."""
    for symbol in range(count):
        if code.symbols[first + symbol, 1] == size:
            alike = True
            for index in range(size):
                if source[begin + index] != code.constants[code.symbols[first + symbol, 0] + index]:
                    alike = False
                    break
            if alike:
                return put_varint(to, at, np.int64(symbol))
    return NO_SYMBOL


@inlined
def put_leaf(
    op: Any, a: Any, b: Any, code: WriteCode, given: InputBuffers, column: Any, entry: Any, to: Bytes, at: Any
) -> Any:
    """Write one entry without structure; there is room for a number."""
    place = given.table[column, BASE] + entry
    if op == INT:
        return put_varint(to, at, np.int64(given.a32[place]))
    if op == LONG:
        value = given.a64[place]
        return put_varint(to, at, value if a == 1 else value // a)
    if op == BOOLEAN:
        to[at] = given.a8[place]
        return at + 1
    if op in (DOUBLE, FLOAT):
        size = 8 if op == DOUBLE else 4
        for index in range(size):
            to[at + index] = given.a8[place * size + index]
        return at + size
    if op == DECIMAL:
        return put_decimal(to, at, given.a64[2 * place], given.a64[2 * place + 1], a)
    begin = given.table[column, DATA] + given.a32[place]
    size = given.a32[place + 1] - given.a32[place]
    if op == ENUM:
        return put_symbol(to, at, given.a8, begin, size, code, a, b)
    if op == FIXED and size != a:
        return WRONG_SIZE
    return put_bytes(to, at, given.a8, begin, size, op == BYTES)


@inlined
def is_null(given: InputBuffers, column: Any, entry: Any) -> Any:
    """Whether an entry is null."""
    valid = given.table[column, VALID]
    return valid >= 0 and given.a8[valid + entry] == 0


@inlined
def one(code: WriteCode, given: InputBuffers, row: Any, to: Bytes, at: Any, stack: Longs) -> tuple[Any, Any]:
    """Write one row; return the position after it (or why it cannot be written), and the last instruction.

    The stack has two numbers for each open list: the entry that contains it, and where its items end.
    """
    pc, level, entry = 0, 0, row
    while True:
        op, column, a, b = code.lines[pc, OP], code.lines[pc, COL], code.lines[pc, A], code.lines[pc, B]
        after = pc + 1
        if len(to) - at < 2 * _VARINT_BYTES:
            at = NO_ROOM
        elif op <= DECIMAL:
            at = put_leaf(op, a, b, code, given, column, entry, to, at)
        elif op in (OPTIONAL, IF_NULL):
            if is_null(given, column, entry):
                at, after = put_varint(to, at, a), b
            elif op == OPTIONAL:
                at = put_varint(to, at, np.int64(1) - a)
        elif op == REQUIRED:
            at = IS_NULL if is_null(given, column, entry) else at
        elif op == CONSTANT:
            at = put_bytes(to, at, code.constants, a, b - a, False)
        elif op == LIST:
            place = given.table[column, BASE] + entry
            begin, end = np.int64(given.a32[place]), np.int64(given.a32[place + 1])
            if begin == end:
                to[at] = 0
                at, after = at + 1, a
            else:
                at = put_varint(to, at, end - begin)
                stack[level], stack[level + 1] = entry, end
                level, entry = level + 2, begin
        elif op == NEXT:
            entry += 1
            if entry < stack[level - 1]:
                after = a
            else:
                to[at] = 0
                level, entry, at = level - 2, stack[level - 2], at + 1
        elif op == MEMBERS:
            chosen = np.int64(0)
            while chosen < b and is_null(given, code.choices[a + chosen, 0], entry):
                chosen += 1
            branch = code.choices[a + chosen, 1]
            if branch < 0:
                at = NO_MEMBER
            else:
                at, after = put_varint(to, at, branch), code.choices[a + chosen, 2]
        elif op == GO:
            after = a
        if at < 0 or op == DONE:
            return at, pc
        pc = after


@compiled
def write(
    code: WriteCode, given: InputBuffers, prefix: Bytes, to: Bytes, ends: Ints, stack: Longs, row: int
) -> tuple[Any, Any, Any]:
    """Write all rows from `row` on; return (the row that failed or the row count, the reason, the instruction)."""
    at = np.int64(ends[row])
    for index in range(row, len(ends) - 1):
        place = np.int64(0)
        if not is_null(given, 0, index):
            reached = put_bytes(to, at, prefix, 0, len(prefix), False)
            if reached >= 0:
                reached, place = one(code, given, index, to, reached, stack)
            if reached < 0:
                return index, reached, place
            at = reached
        ends[index + 1] = at
    return len(ends) - 1, 0, 0
