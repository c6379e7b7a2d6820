"""The columns of an Arrow type: a tree of types becomes a flat table, one row per column, parents first.

Rules:
- A struct has a column of its own (its validity); so has a list or map (its offsets). A list's items are the next
  column; a map's next column are its entries (a struct that is never null), then come keys and values.
- Columns of one level have equally many entries; a list begins a new level for the columns below it.
- Compiled loops see only the table: they know columns by number, and nothing of Arrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.loops import Bytes, Doubles, Floats, Ints, Longs


class Out(NamedTuple):
    """The output of compiled loops: the table, and one arena seen as bytes and as numbers."""

    table: Longs
    a8: Bytes
    a32: Ints
    a64: Longs
    f32: Floats
    f64: Doubles


# Kinds of columns, by the memory of an entry. VAR has offsets and data, LIST has offsets, STRUCT and NONE have nothing.
NONE, W1, W4, W8, W16, VAR, LIST, STRUCT = range(8)
WIDTH_BYTES = (0, 1, 4, 8, 16, 4, 4, 0)

# Fields of the table. BASE counts entries of the column's own width from the start of the arena, the other two bytes.
# VALID is -1 for columns without nulls. AFTER is the first column that is not below this one, LEVEL the list whose
# items it belongs to (-1: a row each).
KIND, COUNT, ROOM, BASE, VALID, DATA, DATA_COUNT, DATA_ROOM, AFTER, LEVEL = range(10)
FIELDS = 10


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column: its number, its Arrow type, whether it has nulls, and the columns directly below."""

    number: int
    kind: int
    type: pa.DataType
    nullable: bool
    level: int
    below: tuple[OutputColumn, ...]

    @property
    def after(self) -> int:
        """The number of the first column that is not below this one."""
        return self.below[-1].after if self.below else self.number + 1


def kind_of(of: pa.DataType) -> int:
    """Return the kind of a type's column. Raises UnsupportedSchema."""
    kinds = pa.types
    if kinds.is_null(of):
        return NONE
    if kinds.is_boolean(of):
        return W1
    if kinds.is_int32(of) or kinds.is_float32(of) or kinds.is_date32(of):
        return W4
    if kinds.is_int64(of) or kinds.is_float64(of) or kinds.is_timestamp(of) or kinds.is_duration(of):
        return W8
    if kinds.is_time64(of):
        return W8
    if kinds.is_decimal128(of):
        return W16
    if kinds.is_string(of) or kinds.is_binary(of):
        return VAR
    if kinds.is_map(of) or kinds.is_list(of):
        return LIST
    if kinds.is_struct(of):
        return STRUCT
    raise UnsupportedSchema(f"there is no column of type {of}")


def columns_of(of: pa.DataType, nullable: bool = True) -> OutputColumn:
    """Return the tree of columns of a type."""
    return _column(of, nullable, 0, -1)


def _column(of: pa.DataType, nullable: bool, number: int, level: int) -> OutputColumn:
    kind = kind_of(of)
    fields: list[pa.Field] = []
    if pa.types.is_map(of):
        entries = pa.struct([of.key_field, of.item_field])
        fields = [pa.field("entries", entries, nullable=False)]
    elif kind == LIST:
        fields = [of.value_field]
    elif kind == STRUCT:
        fields = list(of)
    below: list[OutputColumn] = []
    following = number + 1
    for field in fields:
        below.append(_column(field.type, field.nullable, following, number if kind == LIST else level))
        following = below[-1].after
    return OutputColumn(number, kind, of, nullable, level, tuple(below))


def all_columns(root: OutputColumn) -> list[OutputColumn]:
    """Return the column and all below it, by number."""
    found = [root]
    for child in root.below:
        found.extend(all_columns(child))
    return found


def table_of(root: OutputColumn) -> Longs:
    """Return the table without places: `columns.arena` sets them when it allocates memory."""
    columns = all_columns(root)
    table = np.zeros((len(columns), FIELDS), np.int64)
    for column in columns:
        table[column.number, KIND] = column.kind
        table[column.number, VALID] = 0 if column.nullable else -1
        table[column.number, AFTER] = column.after
        table[column.number, LEVEL] = column.level
    return table
