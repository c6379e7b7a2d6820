"""The tables that a message becomes, and how a value can be bad.

A message is a row of `messages` (where its fields begin, how many), a field a row of `fields`, sorted by number within
its message. What a field is when it is absent: null (-1), an error (-2), or a constant, decoded like what is there.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.columns.loops import Bytes, Longs

# Kinds of values, by wire type: varints, then 8 bytes, then 4, then what has a length.
INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL, ENUM = range(8)
DOUBLE, FIXED64, SFIXED64 = range(8, 11)
FLOAT, FIXED32, SFIXED32 = range(11, 14)
STRING, BYTES, MESSAGE, MOMENT, SPAN = range(14, 19)

VARINT, EIGHT, SIZED, GROUP, GROUP_END, FOUR = range(6)

# Fields of a field. LIST: the column of the list (-1: not repeated). WRAPPED: the value is field 1 of a message.
# A and B: the rows of an enum's symbols; BELOW: the row of a message. ONEOF: its number within the message, or -1.
NUMBER, KIND, COLUMN, LIST, WIRE, ABSENT, WRAPPED, BELOW, A, B, ONEOF = range(11)
FIELD_COLUMNS = 11
FIRST, COUNT = range(2)
NULL, REQUIRED = -1, -2

# Positions below zero are reasons.
SHORT, LONG_VARINT, NOT_UTF8, BAD_TAG, TOO_LARGE, MISSING, NO_ROOM, MERGE = range(-1, -9, -1)
REASONS = {
    SHORT: "the value ends too early",
    LONG_VARINT: "a number has too many bytes",
    NOT_UTF8: "a string is not UTF-8",
    BAD_TAG: "there is no such field or wire type",
    TOO_LARGE: "the time does not fit its type",
    MISSING: "a required field is missing",
    MERGE: "a message is there twice",
}


class Tables(NamedTuple):
    """What the loop sees of a message. `symbols`: number, begin and size in `constants`."""

    messages: Longs
    fields: Longs
    symbols: Longs
    constants: Bytes


class Plan(NamedTuple):
    """A message as tables. `width`: the most fields of one message; `depth`: of messages in each other."""

    tables: Tables
    width: int
    depth: int


def wire_of(kind: int) -> int:
    """The wire type of a kind of values."""
    if kind <= ENUM:
        return VARINT
    if kind <= SFIXED64:
        return EIGHT
    return FOUR if kind <= SFIXED32 else SIZED
