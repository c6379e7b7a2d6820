"""A shape as the table that the loop follows: a line per node, fields with their names, and a hash table of the names.

A line has OP (a `ShapeKind`, or ENTRY for an entry of a map), COLUMN and AFTER (the column, the first not below it),
ITEM (the node of a list's or map's items) and, for a struct, FIRST and COUNT of its fields, SLOTS and MASK: its part of
the hash table, which holds fields (counted from FIRST; -1: free).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ottla.columns.loops import Bytes, Longs, compiled, frozen_bytes
from ottla.columns.shape import OutputColumn
from ottla.schemas.json.shapes import JsonShape, ShapeKind

OP, COLUMN, AFTER, ITEM, FIRST, COUNT, SLOTS, MASK = range(8)
NAME_BEGIN, NAME_END, NODE = range(3)

ENTRY = len(ShapeKind)


class JsonProgramCode(NamedTuple):
    """The part of a program that the compiled loop reads."""

    lines: Longs
    fields: Longs
    slots: Longs
    names: Bytes


@compiled
def hash_of(text: Bytes, begin: Any, end: Any) -> Any:
    """Return the 32-bit FNV-1a hash."""
    made = np.int64(2166136261)
    for index in range(begin, end):
        made = (made ^ np.int64(text[index])) * 16777619 & 0xFFFFFFFF
    return made ^ made >> 15


class _Builder:
    def __init__(self) -> None:
        self.lines: list[list[int]] = []
        self.fields: list[tuple[int, int, int]] = []
        self.slots: list[int] = []
        self.names = bytearray()

    def add(self, shape: JsonShape, column: OutputColumn) -> int:
        """Add a node and return its number."""
        number = self._line(int(shape.kind), column)
        if shape.kind is ShapeKind.STRUCT:
            self._struct(shape, column, self.lines[number])
        elif shape.kind is ShapeKind.LIST:
            self.lines[number][ITEM] = self.add(shape.item, column.below[0])
        elif shape.kind is ShapeKind.MAP:
            (entries,) = column.below
            entry = self.lines[number][ITEM] = self._line(ENTRY, entries)
            self.lines[entry][ITEM] = self.add(shape.item, entries.below[1])
        return number

    def _line(self, op: int, column: OutputColumn) -> int:
        self.lines.append([op, column.number, column.after, 0, 0, 0, 0, 0])
        return len(self.lines) - 1

    def _struct(self, shape: JsonShape, column: OutputColumn, line: list[int]) -> None:
        below = [self.add(each, under) for (_, each), under in zip(shape.fields, column.below, strict=True)]
        size = 1 << (2 * len(below)).bit_length()
        line[FIRST], line[COUNT], line[SLOTS], line[MASK] = len(self.fields), len(below), len(self.slots), size - 1
        slots = [-1] * size
        for index, ((name, _), node) in enumerate(zip(shape.fields, below, strict=True)):
            text = name.encode()
            self.fields.append((len(self.names), len(self.names) + len(text), node))
            self.names += text
            place = int(hash_of(frozen_bytes(text), 0, len(text))) & size - 1
            while slots[place] >= 0:
                place = place + 1 & size - 1
            slots[place] = index
        self.slots += slots


def program_of(shape: JsonShape, column: OutputColumn) -> JsonProgramCode:
    """Return the program for a shape with these columns; it begins at line 0."""
    made = _Builder()
    made.add(shape, column)
    return JsonProgramCode(
        np.array(made.lines, np.int64).reshape(-1, 8),
        np.array(made.fields, np.int64).reshape(-1, 3),
        np.array(made.slots, np.int64),
        frozen_bytes(bytes(made.names)),
    )
