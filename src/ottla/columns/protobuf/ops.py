"""The tables that a message is compiled to, and the reasons for which a value is bad.

A message is a row of `messages` (where its fields begin, how many), a field a row of `fields`, sorted by number within
its message. ABSENT is the value of an absent field: null (-1), an error (-2), or a constant, decoded like a present
one.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.columns.loops import Bytes, Longs

# Kinds of values, by wire type: varints, then 8 bytes, then 4, then what has a length.
INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL, ENUM = range(8)
DOUBLE, FIXED64, SFIXED64 = range(8, 11)
FLOAT, FIXED32, SFIXED32 = range(11, 14)
STRING, BYTES, MESSAGE, MOMENT, SPAN, VALUELESS = range(14, 20)

VARINT, EIGHT, SIZED, GROUP, GROUP_END, FOUR = range(6)

# Fields of a field. COLUMN: -1 for VALUELESS ones: messages in which there is no value, and extensions. LIST: the
# column of the list (-1: not repeated). WRAPPED: the value is field 1 of a message. A and B: the rows of an enum's
# symbols; A of a valueless field: 1 if it may be bad even if it is empty. CLOSED: numbers without a name in the enum
# are not values of it. BELOW: the row of a message. ONEOF: its number within the message, or -1. MAP: it is a map.
# PACKS: its values may be packed. NEEDS_CHECK: it is closed, valueless, or in a oneof.
NUMBER, KIND, COLUMN, LIST, WIRE, ABSENT, WRAPPED, BELOW, A, B, CLOSED, ONEOF, MAP, PACKS, NEEDS_CHECK = range(15)
FIELD_COLUMNS = 15
# ENTRY: the message is an entry of a map.
FIRST, COUNT, ENTRY = range(3)
MESSAGE_COLUMNS = 3
NULL, REQUIRED = -1, -2

# Negative positions are reasons for which a value is bad. ASK_LIBRARY is none: the library decodes the value.
SHORT, LONG_VARINT, NOT_UTF8, BAD_TAG, TOO_LARGE, MISSING, NO_ROOM, ASK_LIBRARY, BAD_GROUP, TOO_MANY = range(
    -1, -11, -1
)
REASONS = {
    SHORT: "the value ends too early",
    LONG_VARINT: "a number has too many bytes",
    NOT_UTF8: "a string is not UTF-8",
    BAD_TAG: "there is no such field or wire type",
    TOO_LARGE: "the time does not fit its type",
    MISSING: "a required field is missing",
    BAD_GROUP: "a group does not end, or is nested too deep",
    TOO_MANY: "the messages in it would take too much memory",
}
# Errors in an entry of a map that do not count if a later entry has the same key.
PASSING = (NOT_UTF8, TOO_LARGE, MISSING)


class Tables(NamedTuple):
    """The part of a plan that the compiled loop reads. `symbols`: number, begin and size in `constants`."""

    messages: Longs
    fields: Longs
    symbols: Longs
    constants: Bytes


class MessagePlan(NamedTuple):
    """A message as tables. `width`: the most fields of one message; `depth`: of nested messages; `maps`: whether there
    are maps.
    """

    tables: Tables
    width: int
    depth: int
    maps: bool


class ProtobufScratch(NamedTuple):
    """Working memory for one value: the messages that contain the position, the places of their fields, the groups
    that contain the position, and the keys seen in a map.
    """

    frames: Longs
    places: Longs
    groups: Longs
    seen: Longs


def wire_of(kind: int) -> int:
    """The wire type of a kind of values."""
    if kind <= ENUM:
        return VARINT
    if kind <= SFIXED64:
        return EIGHT
    return FOUR if kind <= SFIXED32 else SIZED
