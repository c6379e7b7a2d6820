"""The loop that reads messages into columns: bytes in, columns out.

A message is read in two passes: first where each of its fields is (the last one counts; a member of a oneof takes the
place of the others), then field by field, so that every column gets its entries in order. Messages in messages are a
stack of frames. A message that occurs twice in one that can have it once would have to be merged: that is left to the
library (MERGE).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.payloads import Payloads
from ottla.columns.protobuf.ops import (
    ABSENT,
    BAD_TAG,
    BELOW,
    COLUMN,
    COUNT,
    FIRST,
    KIND,
    LIST,
    MERGE,
    MESSAGE,
    MISSING,
    NO_ROOM,
    NUMBER,
    ONEOF,
    REQUIRED,
    SHORT,
    SIZED,
    STRING,
    WIRE,
    WRAPPED,
    A,
    B,
    Tables,
)
from ottla.columns.protobuf.wire import pass_field, push_value, read_size, read_varint
from ottla.columns.push import push_null, take, undo
from ottla.columns.shape import AFTER, BASE, Out
from ottla.columns.shape import COUNT as ENTRIES

# A frame: the message, where it ends, the field to be read next, and where in a repeated one.
MESSAGE_ROW, END, NEXT, CURSOR = range(4)


@inlined
def field_of(tables: Tables, message: Any, number: Any, guess: Any) -> Any:
    """The place of a field within its message, -1 if it has none; it is probably the guessed one."""
    first, count = tables.messages[message, FIRST], tables.messages[message, COUNT]
    if guess < count and tables.fields[first + guess, NUMBER] == number:
        return guess
    low, high = np.int64(0), count
    while low < high:
        middle = (low + high) // 2
        if tables.fields[first + middle, NUMBER] < number:
            low = middle + 1
        else:
            high = middle
    return low if low < count and tables.fields[first + low, NUMBER] == number else np.int64(-1)


@inlined
def locate(tables: Tables, message: Any, data: Bytes, at: Any, end: Any, places: Longs, base: Any) -> Any:
    """Where the fields of a message are: `places` from `base` on (of repeated ones, the first tag; -1 for none).

    A negative answer is why the message is bad.
    """
    first, count = tables.messages[message, FIRST], tables.messages[message, COUNT]
    for field in range(count):
        places[base + field] = -1
    guess = np.int64(0)
    while at < end:
        tag_at = at
        tag, at = read_varint(data, at, end)
        if at < 0:
            return at
        number, wire = (tag >> np.int64(3)) & np.int64(0x1FFFFFFFFFFFFFFF), tag & 7
        if number == 0 or number > 0x1FFFFFFF:
            return BAD_TAG
        field = field_of(tables, message, number, guess)
        if field >= 0:
            row = first + field
            repeated = tables.fields[row, LIST] >= 0
            packed = repeated and wire == SIZED and tables.fields[row, KIND] < STRING
            if wire == tables.fields[row, WIRE] or packed:
                if repeated:
                    if places[base + field] < 0:
                        places[base + field] = tag_at
                else:
                    if places[base + field] >= 0 and tables.fields[row, WIRE] == SIZED and is_merged(tables, row):
                        return MERGE
                    if tables.fields[row, ONEOF] >= 0 and leave_oneof(tables, first, count, row, places, base):
                        return MERGE
                    places[base + field] = at
            guess = field if repeated else field + 1
        at = pass_field(data, at, end, wire)
        if at < 0:
            return at
    return at


@inlined
def is_merged(tables: Tables, row: Any) -> Any:
    """Whether two of a field are merged, not replaced: all messages are."""
    return tables.fields[row, KIND] >= MESSAGE or tables.fields[row, WRAPPED] == 1


@compiled
def leave_oneof(tables: Tables, first: Any, count: Any, row: Any, places: Longs, base: Any) -> Any:
    """Take back the other members of a oneof. True if one of them is a message: what was said of it is gone, which only
    matters if it comes again, and then the library knows."""
    gone = False
    for other in range(count):
        alike = tables.fields[first + other, ONEOF] == tables.fields[row, ONEOF]
        if alike and first + other != row and places[base + other] >= 0:
            places[base + other] = -1
            gone = gone or is_merged(tables, first + other)
    return gone


@compiled
def scalars(tables: Tables, row: Any, out: Out, data: Bytes, at: Any, end: Any) -> Any:
    """Append all values of a repeated field, from its first tag on: packed or one by one. All tags are good."""
    fields = tables.fields
    number, kind, wire, column = fields[row, NUMBER], fields[row, KIND], fields[row, WIRE], fields[row, COLUMN]
    wrapped, a, b = fields[row, WRAPPED], fields[row, A], fields[row, B]
    packed_to = np.int64(-1)  # where the packed values end that we are in
    while at < end:
        inner, mine = wire, True
        if at >= packed_to:
            packed_to = np.int64(-1)
            tag, at = read_varint(data, at, end)
            inner, mine = tag & 7, (tag >> np.int64(3)) & np.int64(0x1FFFFFFF) == number
            if mine and inner == SIZED and kind < STRING and wrapped == 0:
                size, at = read_size(data, at, end)
                packed_to = at + size
                continue
        if mine and inner == wire:
            until = packed_to if packed_to >= 0 else end
            at = push_value(kind, wrapped, a, b, tables, out, column, data, at, until)
        else:
            at = pass_field(data, at, end, inner)
        if at < 0:
            return at
    return at


@compiled
def next_message(tables: Tables, row: Any, data: Bytes, at: Any, end: Any) -> tuple[Any, Any]:
    """The next message of a repeated field, from a tag on: (position, size), or a size of -1 if there is none.

    `locate` has been here before, so there are only good tags."""
    while 0 <= at < end:
        tag, at = read_varint(data, at, end)
        if (tag >> np.int64(3)) & np.int64(0x1FFFFFFF) == tables.fields[row, NUMBER] and tag & 7 == SIZED:
            size, at = read_size(data, at, end)
            return np.int64(at), size
        at = np.int64(pass_field(data, at, end, tag & 7))
    return np.int64(at), np.int64(-1)


@inlined
def single(tables: Tables, row: Any, out: Out, data: Bytes, at: Any, end: Any) -> Any:
    """Append a field that is no message, at its place or (-1) absent; a negative answer is why not."""
    fields = tables.fields
    column, absent = fields[row, COLUMN], fields[row, ABSENT]
    kind, a, b = fields[row, KIND], fields[row, A], fields[row, B]
    wrapped = fields[row, WRAPPED]
    if at < 0:
        if absent == REQUIRED:
            return MISSING
        if absent < 0:
            return np.int64(0) if push_null(out, column, out.table[column, AFTER]) else NO_ROOM
        data, at, end, wrapped = tables.constants, absent, np.int64(len(tables.constants)), np.int64(0)
    return push_value(kind, wrapped, a, b, tables, out, column, data, at, end)


@inlined
def one(tables: Tables, data: Bytes, at: Any, end: Any, out: Out, frames: Longs, places: Longs, width: Any) -> Any:
    """One value; a negative answer is why it is bad."""
    level, fields = -1, tables.fields
    message, column, reached = np.int64(0), np.int64(0), np.int64(0)
    below, size = np.int64(at), np.int64(end - at)  # the message to be opened, if any
    while reached >= 0:
        if below >= 0:
            level += 1
            reached = np.int64(locate(tables, message, data, below, below + size, places, level * width))
            frames[level, MESSAGE_ROW], frames[level, END] = message, below + size
            frames[level, NEXT], frames[level, CURSOR] = 0, -1
            if reached >= 0 and take(out, column) < 0:
                reached = np.int64(NO_ROOM)
            below = np.int64(-1)
            continue
        message, end, field = frames[level, MESSAGE_ROW], frames[level, END], frames[level, NEXT]
        if field == tables.messages[message, COUNT]:
            level -= 1
            if level < 0:
                return reached
            continue
        row = tables.messages[message, FIRST] + field
        place, column, items = places[level * width + field], fields[row, COLUMN], fields[row, LIST]
        message, size = fields[row, BELOW], np.int64(0)
        if items >= 0:
            cursor = frames[level, CURSOR]
            if cursor < 0:
                cursor = place if place >= 0 else end
                reached = np.int64(take(out, items))
            if reached < 0:
                reached = np.int64(NO_ROOM)
            elif fields[row, KIND] != MESSAGE:
                reached, size = np.int64(scalars(tables, row, out, data, cursor, end)), np.int64(-1)
            else:
                below, size = next_message(tables, row, data, cursor, end)
                frames[level, CURSOR] = below + size
            if size < 0 and reached >= 0:
                out.a32[out.table[items, BASE] + out.table[items, ENTRIES]] = out.table[items + 1, ENTRIES]
                frames[level, CURSOR], frames[level, NEXT], below = -1, field + 1, np.int64(-1)
        else:
            frames[level, NEXT] = field + 1
            if fields[row, KIND] == MESSAGE and place >= 0:
                size, below = read_size(data, place, end)
                reached = np.int64(below)
            elif fields[row, KIND] == MESSAGE and fields[row, ABSENT] >= 0:
                below = np.int64(end)
            else:
                reached = np.int64(single(tables, row, out, data, place, end))
    return reached


@compiled
def run(
    tables: Tables, given: Payloads, out: Out, frames: Longs, places: Longs, width: int, row: int, outcomes: Longs
) -> Any:
    """All values from `row` on: the row that found no room (everything before it is complete), or how many there are.

    `outcomes` gets the reason of bad rows.
    """
    for index in range(row, len(given.begins)):
        outcome = np.int64(0)
        there = given.there[index]
        if there:
            at, end = given.begins[index], given.ends[index]
            outcome = np.int64(SHORT)
            if at <= end:
                outcome = np.int64(one(tables, given.data, at, end, out, frames, places, width))
        if outcome == NO_ROOM:
            return index
        if outcome < 0:
            undo(out, index)
            outcomes[index] = outcome
        if (outcome < 0 or not there) and not push_null(out, 0, len(out.table)):
            return index
    return len(given.begins)
