"""Functions that append entries to columns: leaf functions of the compiled loops.

All take `Out` of `columns.shape`: the table of columns and views of one arena. If a column has no room, the result is
negative and nothing is written; the caller then asks for a larger arena and takes the row back (`undo`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, compiled, inlined
from ottla.columns.shape import (
    AFTER,
    BASE,
    COUNT,
    DATA,
    DATA_COUNT,
    DATA_ROOM,
    KIND,
    LEVEL,
    LIST,
    ROOM,
    VALID,
    VAR,
    W1,
    W4,
    W8,
    W16,
    Out,
)


@inlined
def take(out: Out, column: Any) -> Any:
    """Append an entry that is not null and return its number; -1 without room."""
    table = out.table
    entry = table[column, COUNT]
    if entry >= table[column, ROOM]:
        return np.int64(-1)
    table[column, COUNT] = entry + 1
    valid = table[column, VALID]
    if valid >= 0:
        out.a8[valid + entry] = 1
    return entry


@inlined
def push_bytes(out: Out, column: Any, source: Bytes, at: Any, size: Any) -> Any:
    """Append bytes as one entry and return its number; -1 without room."""
    table, a8 = out.table, out.a8
    begin = table[column, DATA_COUNT]
    if begin + size > table[column, DATA_ROOM]:
        return np.int64(-1)
    entry = take(out, column)
    if entry >= 0:
        to = table[column, DATA] + begin
        for index in range(size):
            a8[to + index] = source[at + index]
        table[column, DATA_COUNT] = begin + size
        out.a32[table[column, BASE] + entry + 1] = begin + size
    return entry


@compiled
def push_null(out: Out, first: Any, after: Any) -> bool:
    """Append a null to a column and to those below it that have equally many entries; False without room."""
    table, a8, a32, a64 = out.table, out.a8, out.a32, out.a64
    column = first
    while column < after:
        entry = take(out, column)
        if entry < 0:
            return False
        valid = table[column, VALID]
        if valid >= 0:
            a8[valid + entry] = 0
        kind = table[column, KIND]
        base = table[column, BASE]
        if kind == W1:
            a8[base + entry] = 0
        elif kind == W4:
            a32[base + entry] = 0
        elif kind == W8:
            a64[base + entry] = 0
        elif kind == W16:
            a64[2 * (base + entry)] = 0
            a64[2 * (base + entry) + 1] = 0
        elif kind in (VAR, LIST):
            a32[base + entry + 1] = a32[base + entry]
        column = table[column, AFTER] if kind == LIST else column + 1
    return True


@compiled
def undo(out: Out, row: Any) -> None:
    """Remove the entries that were appended since `row` rows were complete."""
    table, a32 = out.table, out.a32
    for column in range(len(table)):
        level = table[column, LEVEL]
        count = row
        if level >= 0:
            count = a32[table[level, BASE] + table[level, COUNT]]
        table[column, COUNT] = count
        if table[column, KIND] == VAR:
            table[column, DATA_COUNT] = a32[table[column, BASE] + count]


@compiled
def is_utf8(data: Bytes, at: Any, size: Any) -> bool:
    """Return whether bytes are well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF."""
    end = at + size
    high = 0
    for index in range(at, end):
        high |= data[index]
    if high < 128:
        return True
    while at < end:
        lead = data[at]
        at += 1
        if lead < 128:
            continue
        more = 0
        low, top = 0x80, 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            low = 0xA0 if lead == 0xE0 else 0x80
            top = 0x9F if lead == 0xED else 0xBF
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            low = 0x90 if lead == 0xF0 else 0x80
            top = 0x8F if lead == 0xF4 else 0xBF
        if more == 0 or at + more > end or not low <= data[at] <= top:
            return False
        for index in range(at + 1, at + more):
            if data[index] & 0xC0 != 0x80:
                return False
        at += more
    return True
