"""The loop that reads messages into columns: bytes in, columns out.

A message is read in two passes: the first finds the place of each field (the last occurrence counts; a member of a
oneof replaces the others), the second reads field by field, so that every column gets its entries in order. Nested
messages are a stack of frames.

Rare cases are left to the library (ASK_LIBRARY), which serialises the value again in its plain form: messages that
occur twice and are merged, repeated keys of a map, entries of maps with more than key and value, messages without
columns that are not empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled, inlined
from ottla.columns.payloads import Payloads
from ottla.columns.protobuf.keys import maybe_twice
from ottla.columns.protobuf.ops import (
    ABSENT,
    ASK_LIBRARY,
    BELOW,
    CLOSED,
    COLUMN,
    COUNT,
    ENTRY,
    FIRST,
    GROUP,
    KIND,
    LIST,
    MAP,
    MESSAGE,
    MISSING,
    NEEDS_CHECK,
    NO_ROOM,
    NUMBER,
    ONEOF,
    PACKS,
    REQUIRED,
    SHORT,
    SIZED,
    STRING,
    TOO_MANY,
    VALUELESS,
    VARINT,
    WIRE,
    WRAPPED,
    A,
    B,
    ProtobufScratch,
    Tables,
)
from ottla.columns.protobuf.values import low32, push_value, symbol_of
from ottla.columns.protobuf.wire import pass_field, pass_group, read_size, read_tag, read_varint
from ottla.columns.push import push_null, take, undo
from ottla.columns.shape import AFTER, BASE, Out
from ottla.columns.shape import COUNT as ENTRIES
from ottla.model.limits import COLUMN_CELLS_PER_VALUE_MAX, PROTOBUF_PAYLOAD_DEPTH_MAX

# A frame: the message, its end, the next field to read, and the position in a repeated one.
MESSAGE_ROW, END, NEXT, CURSOR = range(4)
DEPTH_MAX = PROTOBUF_PAYLOAD_DEPTH_MAX
CELLS_MAX = COLUMN_CELLS_PER_VALUE_MAX


@inlined
def field_of(tables: Tables, message: Any, number: Any, guess: Any) -> Any:
    """Return the index of a field within its message, -1 if there is none; `guess` is probably right."""
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


@compiled
def is_named(tables: Tables, row: Any, data: Bytes, at: Any, end: Any) -> Any:
    """Return whether the number at a position is a value of a closed enum."""
    value, at = read_varint(data, at, end)
    return at >= 0 and symbol_of(tables, tables.fields[row, A], tables.fields[row, B], low32(value)) >= 0


@compiled
def settle(
    tables: Tables,
    message: Any,
    field: Any,
    data: Bytes,
    at: Any,
    end: Any,
    wire: Any,
    places: Longs,
    base: Any,
    plain: Any,
) -> Any:
    """Handle an occurrence of a field that NEEDS_CHECK; return 1 if it counts, 0 if it is skipped like an unknown one,
    or ASK_LIBRARY.
    """
    fields, first = tables.fields, tables.messages[message, FIRST]
    row = first + field
    if fields[row, CLOSED] == 1 and wire == VARINT and not is_named(tables, row, data, at, end):
        return np.int64(0)
    asks_library = fields[row, KIND] == VALUELESS and not plain
    if asks_library and (fields[row, A] == 1 or wire == GROUP or at == end or data[at] != 0):
        return np.int64(ASK_LIBRARY)
    if fields[row, ONEOF] >= 0 and leave_oneof(tables, first, tables.messages[message, COUNT], row, places, base):
        return np.int64(ASK_LIBRARY)
    return np.int64(1)


@inlined
def locate(
    tables: Tables,
    message: Any,
    data: Bytes,
    at: Any,
    end: Any,
    scratch: ProtobufScratch,
    base: Any,
    depth: Any,
    plain: Any,
) -> Any:
    """Find the fields of a message and store their places in `places` from `base` on (of repeated fields, the first
    tag; -1 if absent).

    `depth`: how deep groups may be nested; `plain`: the library wrote the value. A negative result is why the message
    is bad.
    """
    fields, places = tables.fields, scratch.places
    first, count = tables.messages[message, FIRST], tables.messages[message, COUNT]
    is_entry = tables.messages[message, ENTRY] == 1
    for field in range(count):
        places[base + field] = -1
    row, guess = np.int64(0), np.int64(0)
    while at < end:
        tag_at = at
        tag, at = read_tag(data, at, end)
        if at < 0:
            return at
        field = field_of(tables, message, tag >> 3, guess)
        counts = np.int64(0)
        if field >= 0:
            row, wire = first + field, tag & 7
            if wire == fields[row, WIRE] or (wire == SIZED and fields[row, PACKS] == 1):
                counts = np.int64(1)
                if fields[row, NEEDS_CHECK] == 1:
                    counts = settle(tables, message, field, data, at, end, wire, places, base, plain)
        if counts == 1:
            if fields[row, LIST] >= 0:
                if places[base + field] < 0:
                    places[base + field] = tag_at
                guess = field
            else:
                if places[base + field] >= 0 and is_heavy(tables, row):
                    return ASK_LIBRARY
                places[base + field] = at
                guess = field + 1
        elif counts < 0 or is_entry:
            return ASK_LIBRARY
        at = pass_field(data, at, end, tag, scratch.groups, depth)
        if at < 0:
            return at
    return at


@inlined
def is_heavy(tables: Tables, row: Any) -> Any:
    """Return whether the last occurrence of a field does not suffice: messages are merged, and all strings are
    checked.
    """
    kind = tables.fields[row, KIND]
    return kind == STRING or (kind >= MESSAGE and kind != VALUELESS) or tables.fields[row, WRAPPED] == 1


@compiled
def leave_oneof(tables: Tables, first: Any, count: Any, row: Any, places: Longs, base: Any) -> Any:
    """Remove the other members of a oneof. Return True if one of them is more than a number: its first occurrence is
    lost, which only matters if it occurs again or is bad, and then the library decides.
    """
    gone = False
    for other in range(count):
        alike = tables.fields[first + other, ONEOF] == tables.fields[row, ONEOF]
        if alike and first + other != row and places[base + other] >= 0:
            places[base + other] = -1
            gone = gone or is_heavy(tables, first + other)
    return gone


@compiled
def scalars(tables: Tables, row: Any, out: Out, data: Bytes, at: Any, end: Any, groups: Longs, depth: Any) -> Any:
    """Append all values of a repeated field, from its first tag on: packed or one by one. `locate` has checked the
    tags.
    """
    fields = tables.fields
    number, wire, closed, wrapped = fields[row, NUMBER], fields[row, WIRE], fields[row, CLOSED], fields[row, WRAPPED]
    packs = fields[row, PACKS] == 1
    packed_to = np.int64(-1)  # end of the current packed values
    while 0 <= at < end:
        tag, mine = wire, True
        if at >= packed_to:
            packed_to = np.int64(-1)
            tag, at = read_tag(data, at, end)
            if at < 0:
                return at
            mine = tag >> 3 == number
            if mine and packs and tag & 7 == SIZED:
                size, at = read_size(data, at, end)
                packed_to = at + size
                continue
        until = packed_to if packed_to >= 0 else end
        if mine and closed == 1 and tag & 7 == wire and not is_named(tables, row, data, at, until):
            _, at = read_varint(data, at, until)
        elif mine and tag & 7 == wire:
            at = push_value(tables, row, out, data, at, until, wrapped, groups, depth)
        else:
            at = pass_field(data, at, end, tag, groups, depth)
    return at


@compiled
def next_message(
    tables: Tables, row: Any, data: Bytes, at: Any, end: Any, groups: Longs, depth: Any
) -> tuple[Any, Any, Any]:
    """Return the next message of a repeated field, from a tag on: (position, size, the position after it), or a size
    of -1 if there is none. `locate` has checked the tags.
    """
    while 0 <= at < end:
        tag, at = read_tag(data, at, end)
        if tag >> 3 == tables.fields[row, NUMBER] and tag & 7 == tables.fields[row, WIRE]:
            begin, size, after = inside(tables, row, data, at, end, groups, depth)
            return np.int64(begin), np.int64(size), np.int64(after)
        at = np.int64(pass_field(data, at, end, tag, groups, depth))
    return np.int64(at), np.int64(-1), np.int64(at)


@inlined
def inside(tables: Tables, row: Any, data: Bytes, at: Any, end: Any, groups: Longs, depth: Any) -> tuple[Any, Any, Any]:
    """Return the place of a field's message, from behind its tag on: (position, size, the position after it)."""
    if tables.fields[row, WIRE] == GROUP:
        until, after = pass_group(data, at, end, tables.fields[row, NUMBER], groups, depth)
        return np.int64(at), until - at, after
    size, at = read_size(data, at, end)
    return np.int64(at), np.int64(size), np.int64(at + size)


@inlined
def single(tables: Tables, row: Any, out: Out, data: Bytes, at: Any, end: Any, groups: Longs, depth: Any) -> Any:
    """Append a field that is no message, at its place or (-1) absent; a negative result is why it is bad."""
    fields = tables.fields
    column, absent, wrapped = fields[row, COLUMN], fields[row, ABSENT], fields[row, WRAPPED]
    if at < 0 and absent == REQUIRED:
        return MISSING
    if column < 0:
        return np.int64(0)
    if at < 0:
        if absent < 0:
            return np.int64(0) if push_null(out, column, out.table[column, AFTER]) else NO_ROOM
        data, at, end, wrapped = tables.constants, absent, np.int64(len(tables.constants)), np.int64(0)
    return push_value(tables, row, out, data, at, end, wrapped, groups, depth)


@inlined
def end_list(tables: Tables, row: Any, out: Out, scratch: ProtobufScratch, plain: Any) -> Any:
    """Set the end of a list after all of its items; return ASK_LIBRARY if it is a map with a repeated key."""
    items = tables.fields[row, LIST]
    place = out.table[items, BASE] + out.table[items, ENTRIES]
    after = out.table[items + 1, ENTRIES]
    out.a32[place] = after
    first = np.int64(out.a32[place - 1])
    is_checked = tables.fields[row, MAP] == 1 and not plain
    if is_checked and after - first > 1 and maybe_twice(out, items + 2, first, after, scratch.seen):
        return np.int64(ASK_LIBRARY)
    return np.int64(0)


@inlined
def one(
    tables: Tables, data: Bytes, at: Any, end: Any, out: Out, scratch: ProtobufScratch, width: Any, plain: Any
) -> Any:
    """Read one value; a negative result is why it is bad."""
    level, fields, frames, groups = -1, tables.fields, scratch.frames, scratch.groups
    message, column, reached, cells = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    below, size = np.int64(at), np.int64(end - at)  # the message to be opened, if any
    while reached >= 0:
        if below >= 0:
            level += 1
            reached = np.int64(
                locate(tables, message, data, below, below + size, scratch, level * width, DEPTH_MAX - level, plain)
            )
            frames[level, MESSAGE_ROW], frames[level, END] = message, below + size
            frames[level, NEXT], frames[level, CURSOR] = 0, -1
            cells += out.table[column, AFTER] - column
            if cells > CELLS_MAX:
                reached = np.int64(TOO_MANY)
            elif reached >= 0 and take(out, column) < 0:
                reached = np.int64(NO_ROOM)
            below = np.int64(-1)
            continue
        message, end, field = frames[level, MESSAGE_ROW], frames[level, END], frames[level, NEXT]
        if field == tables.messages[message, COUNT]:
            level -= 1
            if level < 0:
                return reached
            continue
        row, depth = tables.messages[message, FIRST] + field, DEPTH_MAX - level
        place, column, items = scratch.places[level * width + field], fields[row, COLUMN], fields[row, LIST]
        message, size = fields[row, BELOW], np.int64(0)
        if items >= 0:
            cursor = frames[level, CURSOR]
            if cursor < 0:
                cursor = place if place >= 0 else end
                reached = np.int64(take(out, items))
            if reached < 0:
                reached = np.int64(NO_ROOM)
            elif fields[row, KIND] != MESSAGE:
                reached, size = np.int64(scalars(tables, row, out, data, cursor, end, groups, depth)), np.int64(-1)
            else:
                below, size, frames[level, CURSOR] = next_message(tables, row, data, cursor, end, groups, depth)
            if size < 0 and reached >= 0:
                reached = np.int64(end_list(tables, row, out, scratch, plain))
                frames[level, CURSOR], frames[level, NEXT], below = -1, field + 1, np.int64(-1)
        else:
            frames[level, NEXT] = field + 1
            if fields[row, KIND] == MESSAGE and place >= 0:
                below, size, _ = inside(tables, row, data, place, end, groups, depth)
                reached = np.int64(below)
            elif fields[row, KIND] == MESSAGE and fields[row, ABSENT] >= 0:
                below = np.int64(end)
            else:
                reached = np.int64(single(tables, row, out, data, place, end, groups, depth))
    return reached


@compiled
def run(
    tables: Tables,
    given: Payloads,
    out: Out,
    scratch: ProtobufScratch,
    width: int,
    row: int,
    plain: bool,
    outcomes: Longs,
) -> Any:
    """Read all values from `row` on; return the row that found no room (all rows before it are complete), or the row
    count.

    `plain`: the library wrote them. `outcomes` gets the reason of bad rows.
    """
    for index in range(row, len(given.begins)):
        outcome = np.int64(0)
        there = given.there[index]
        if there:
            at, end = given.begins[index], given.ends[index]
            outcome = np.int64(SHORT)
            if at <= end:
                outcome = np.int64(one(tables, given.data, at, end, out, scratch, width, plain))
        if outcome == NO_ROOM:
            return index
        if outcome < 0:
            undo(out, index)
            outcomes[index] = outcome
        if (outcome < 0 or not there) and not push_null(out, 0, len(out.table)):
            return index
    return len(given.begins)
