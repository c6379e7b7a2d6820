"""The loop that turns JSON text into columns: each value is scanned to a tape, then its parts are appended to columns.

Pending work is on a stack: a node of the program and the tape's line with its value (-1: it is absent). So columns get
their entries in order: the contents of an item are done before the next item begins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ottla.columns.json import program
from ottla.columns.json.numbers import FINE, HARD, double, whole
from ottla.columns.json.program import (
    ENTRY,
    FIRST,
    ITEM,
    MASK,
    NAME_BEGIN,
    NAME_END,
    NODE,
    OP,
    SLOTS,
    JsonProgramCode,
    hash_of,
)
from ottla.columns.json.scan import AFTER, ARRAY, BEGIN, END, FALSE, KIND, NULL, NUMBER, OBJECT, STRING, TRUE, scan
from ottla.columns.json.texts import base64, day, moment
from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.payloads import Payloads
from ottla.columns.push import push_bytes, push_null, take, undo
from ottla.columns.shape import BASE, DATA, DATA_COUNT, DATA_ROOM, Out
from ottla.schemas.json.shapes import ShapeKind

LONG, DOUBLE, BOOLEAN = int(ShapeKind.LONG), int(ShapeKind.DOUBLE), int(ShapeKind.BOOLEAN)
TEXT, MOMENT, DAY, BYTES, ANY = (
    int(ShapeKind.STRING),
    int(ShapeKind.MOMENT),
    int(ShapeKind.DAY),
    int(ShapeKind.BYTES),
    int(ShapeKind.ANY),
)
STRUCT, LIST, MAP = int(ShapeKind.STRUCT), int(ShapeKind.LIST), int(ShapeKind.MAP)
COLUMN, BELOW, COUNT = program.COLUMN, program.AFTER, program.COUNT

GOOD, UNFIT, NO_ROOM = np.int64(0), np.int64(-1), np.int64(-2)


class JsonScratch(NamedTuple):
    """Working memory for the largest value. `hard` collects numbers to be converted afterwards (the place of their
    text, column, entry), `counts` holds how many there are.
    """

    tape: Longs
    chars: Bytes
    around: Longs
    work: Longs
    places: Longs
    seen: Longs
    hard: Longs
    counts: Longs


@inlined
def is_name(code: JsonProgramCode, field: Any, chars: Bytes, begin: Any, end: Any) -> bool:
    """Return whether a string is the name of a field."""
    at = code.fields[field, NAME_BEGIN]
    if code.fields[field, NAME_END] - at != end - begin:
        return False
    while begin < end and code.names[at] == chars[begin]:
        begin += 1
        at += 1
    return bool(begin == end)


@compiled
def field_of(code: JsonProgramCode, node: Any, chars: Bytes, begin: Any, end: Any, guess: Any) -> Any:
    """Return the field of a name, counted from the struct's first; -1 if there is none. Fields mostly come in order."""
    first = code.lines[node, FIRST]
    if guess < code.lines[node, COUNT] and is_name(code, first + guess, chars, begin, end):
        return guess
    mask, slots = code.lines[node, MASK], code.lines[node, SLOTS]
    place = hash_of(chars, begin, end) & mask
    while True:
        field = code.slots[slots + place]
        if field < 0 or is_name(code, first + field, chars, begin, end):
            return field
        place = place + 1 & mask


@compiled
def struct(code: JsonProgramCode, node: Any, line: Any, top: Any, room: JsonScratch) -> Any:
    """Push the fields of an object on the stack; return its new top. Of a repeated name the last counts."""
    first, count = code.lines[node, FIRST], code.lines[node, COUNT]
    for field in range(first, first + count):
        room.places[field] = -1
    tape = room.tape
    guess = np.int64(0)
    at = line + 1
    while at < tape[line, AFTER]:
        field = field_of(code, node, room.chars, tape[at, BEGIN], tape[at, END], guess)
        if field >= 0:
            room.places[first + field] = at + 1
            guess = field + 1
        at = tape[at + 1, AFTER]
    for field in range(first + count - 1, first - 1, -1):
        room.work[top, 0], room.work[top, 1] = code.fields[field, NODE], room.places[field]
        top += 1
    return top


@compiled
def reverse(work: Longs, begin: Any, end: Any) -> None:
    """Reverse a part of the stack, so that its first entry is done first."""
    end -= 1
    while begin < end:
        work[begin, 0], work[end, 0] = work[end, 0], work[begin, 0]
        work[begin, 1], work[end, 1] = work[end, 1], work[begin, 1]
        begin += 1
        end -= 1


@compiled
def is_new(room: JsonScratch, line: Any, mask: Any) -> bool:
    """Return whether a name has not been seen yet, and add it to those seen."""
    tape, chars = room.tape, room.chars
    begin, size = tape[line, BEGIN], tape[line, END] - tape[line, BEGIN]
    place = hash_of(chars, begin, begin + size) & mask
    while room.seen[place] >= 0:
        other = room.seen[place]
        at = tape[other, BEGIN]
        same = tape[other, END] - at == size
        for index in range(size if same else 0):
            if chars[at + index] != chars[begin + index]:
                same = False
                break
        if same:
            return False
        place = place + 1 & mask
    room.seen[place] = line
    return True


@compiled
def items(code: JsonProgramCode, node: Any, line: Any, top: Any, room: JsonScratch) -> Any:
    """Push the items of an array, or the entries of an object, on the stack; return its new top."""
    tape, work = room.tape, room.work
    item = code.lines[node, ITEM]
    is_map = code.lines[node, OP] == MAP
    begin = top
    at = line + 1
    while at < tape[line, AFTER]:
        work[top, 0], work[top, 1] = item, at
        top += 1
        at = tape[at + 1 if is_map else at, AFTER]
    reverse(work, begin, top)
    if not is_map or top - begin < 2:
        return top
    mask = np.int64(1)
    while mask < 2 * (top - begin):
        mask *= 2
    room.seen[:mask] = -1
    kept = begin
    for index in range(begin, top):
        if is_new(room, work[index, 1], mask - 1):
            work[kept, 1] = work[index, 1]
            kept += 1
    return kept


@compiled
def compact(text: Bytes, at: Any, end: Any, out: Out, column: Any) -> Any:
    """Append JSON text without the whitespace between its parts."""
    table = out.table
    begin = table[column, DATA_COUNT]
    if begin + end - at > table[column, DATA_ROOM]:
        return NO_ROOM
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    to = table[column, DATA] + begin
    in_string = False
    while at < end:
        byte = text[at]
        if byte == 34:
            in_string = not in_string
        elif byte == 92:
            out.a8[to] = byte
            to += 1
            at += 1
            byte = text[at]
        if in_string or not (byte == 32 or byte == 10 or byte == 13 or byte == 9):
            out.a8[to] = byte
            to += 1
        at += 1
    table[column, DATA_COUNT] = to - table[column, DATA]
    out.a32[table[column, BASE] + entry + 1] = table[column, DATA_COUNT]
    return GOOD


@compiled
def numeric(op: Any, text: Bytes, line: Any, room: JsonScratch, out: Out, column: Any) -> Any:
    """Append a LONG or DOUBLE."""
    if room.tape[line, KIND] != NUMBER:
        return UNFIT
    at, end = room.tape[line, BEGIN], room.tape[line, END]
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    to = out.table[column, BASE] + entry
    if op == LONG:
        integer, is_fine = whole(text, at, end)
        if is_fine != FINE:
            return UNFIT
        out.a64[to] = integer
        return GOOD
    real, is_fine = double(text, at, end)
    if is_fine == HARD:
        if room.counts[0] == len(room.hard):
            return NO_ROOM
        count, hard = room.counts[0], room.hard
        hard[count, 0], hard[count, 1], hard[count, 2], hard[count, 3] = at, end, column, entry
        room.counts[0] += 1
    elif is_fine != FINE:
        return UNFIT
    out.f64[to] = real
    return GOOD


@compiled
def textual(op: Any, line: Any, room: JsonScratch, out: Out, column: Any) -> Any:
    """Append a string, or the value that a string stands for."""
    chars = room.chars
    at, end = room.tape[line, BEGIN], room.tape[line, END]
    if op == BYTES:
        size = base64(chars, at, end)
        if size < 0:
            return UNFIT
        end = at + size
    if op in (TEXT, ANY, BYTES):
        return GOOD if push_bytes(out, column, chars, at, end - at) >= 0 else NO_ROOM
    micros, is_fine = np.int64(0), False
    if op == MOMENT:
        micros, is_fine = moment(chars, at, end)
    else:
        micros, is_fine = day(chars, at, end)
        is_fine = is_fine and end - at == 10
    if not is_fine:
        return UNFIT
    entry = take(out, column)
    if entry < 0:
        return NO_ROOM
    to = out.table[column, BASE] + entry
    if op == MOMENT:
        out.a64[to] = micros
    else:
        out.a32[to] = micros
    return GOOD


@inlined
def leaf(op: Any, text: Bytes, line: Any, room: JsonScratch, out: Out, column: Any) -> Any:
    """Append a value that is not null, and has no parts with columns of their own."""
    kind = room.tape[line, KIND]
    if op in (LONG, DOUBLE):
        return numeric(op, text, line, room, out, column)
    if op == BOOLEAN:
        if kind != TRUE and kind != FALSE:
            return UNFIT
        entry = take(out, column)
        if entry < 0:
            return NO_ROOM
        out.a8[out.table[column, BASE] + entry] = 1 if kind == TRUE else 0
        return GOOD
    if op == ANY and kind != STRING:
        return compact(text, room.tape[line, BEGIN], room.tape[line, END], out, column)
    if kind != STRING or op < TEXT or op > ANY:
        return UNFIT
    return textual(op, line, room, out, column)


@compiled
def fill(code: JsonProgramCode, text: Bytes, room: JsonScratch, out: Out) -> Any:
    """Append the value on the tape to the columns; return GOOD, UNFIT or NO_ROOM."""
    work, tape, table = room.work, room.tape, out.table
    work[0, 0], work[0, 1] = 0, 0
    top = np.int64(1)
    while top > 0:
        top -= 1
        node, line = work[top, 0], work[top, 1]
        op, column = code.lines[node, OP], code.lines[node, COLUMN]
        if line < 0 or tape[line, KIND] == NULL:
            if not push_null(out, column, code.lines[node, BELOW]):
                return NO_ROOM
        elif op < STRUCT:
            done = leaf(op, text, line, room, out, column)
            if done != GOOD:
                return done
        else:
            if op != ENTRY and tape[line, KIND] != (ARRAY if op == LIST else OBJECT):
                return UNFIT
            entry = take(out, column)
            if entry < 0:
                return NO_ROOM
            if op == STRUCT:
                top = struct(code, node, line, top, room)
            elif op == ENTRY:
                if push_bytes(out, column + 1, room.chars, tape[line, BEGIN], tape[line, END] - tape[line, BEGIN]) < 0:
                    return NO_ROOM
                work[top, 0], work[top, 1] = code.lines[node, ITEM], line + 1
                top += 1
            else:
                begin = top
                top = items(code, node, line, top, room)
                offset = table[column, BASE] + entry
                out.a32[offset + 1] = out.a32[offset] + top - begin
    return GOOD


@compiled
def run(code: JsonProgramCode, given: Payloads, room: JsonScratch, out: Out, row: Any, bad: Any) -> Any:
    """Read all rows from `row` on; return the row that found no room, or the row count. `bad` marks rows that do not
    fit.
    """
    after = code.lines[0, BELOW]
    while row < len(given.begins):
        hard = room.counts[0]
        done = GOOD
        if given.there[row]:
            is_json = scan(given.data, given.begins[row], given.ends[row], room.tape, room.chars, room.around)
            done = fill(code, given.data, room, out) if is_json else UNFIT
            if done == UNFIT:
                undo(out, row)
                bad[row] = True
        if done == NO_ROOM or ((bad[row] or not given.there[row]) and not push_null(out, np.int64(0), after)):
            room.counts[0] = hard
            return row
        if bad[row]:
            room.counts[0] = hard
        row += 1
    return row
