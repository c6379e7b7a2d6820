"""The memory that compiled loops write columns to: one arena, laid out by a table, then passed to Arrow without a
copy.

Unused memory of the arena is never touched, so spare room costs address space only.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.loops import Bytes, Longs
from ottla.columns.shape import (
    BASE,
    COUNT,
    DATA,
    DATA_COUNT,
    DATA_ROOM,
    KIND,
    LEVEL,
    LIST,
    NONE,
    ROOM,
    STRUCT,
    VALID,
    VAR,
    W1,
    WIDTH_BYTES,
    Out,
    OutputColumn,
    table_of,
)
from ottla.model.limits import INT32_MAX

_ALIGNMENT_BYTES = 64


class Arena:
    """Memory for the columns of one type."""

    def __init__(self, root: OutputColumn, rows: int, input_bytes: int) -> None:
        self.root = root
        self.table = table_of(root)
        for column in range(len(self.table)):
            top = self.table[column, LEVEL] < 0
            self.table[column, ROOM] = rows if top else rows + min(3 * rows, input_bytes) + 16
            self.table[column, DATA_ROOM] = min(input_bytes + 16, INT32_MAX)  # offsets have 32 bits
        self._lay_out()
        a32 = self.a8.view(np.int32)
        for row in self.table:
            if row[KIND] in (VAR, LIST):
                a32[row[BASE]] = 0

    def _lay_out(self) -> None:
        """Allocate a new arena and set the place of each column in it."""
        size = 0

        def place(count: int) -> int:
            nonlocal size
            begin = size
            size += -(-count // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            return begin

        for row in self.table:
            width = WIDTH_BYTES[row[KIND]]
            if width:
                row[BASE] = place((int(row[ROOM]) + 1) * width) // width
            if row[VALID] >= 0:
                row[VALID] = place(int(row[ROOM]))
            if row[KIND] == VAR:
                row[DATA] = place(int(row[DATA_ROOM]))
        self.a8: Bytes = np.empty(size, np.uint8)

    @property
    def out(self) -> Out:
        """The arena in the form that compiled loops take."""
        a8 = self.a8
        return Out(self.table, a8, a8.view(np.int32), a8.view(np.int64), a8.view(np.float32), a8.view(np.float64))

    def grow(self) -> None:
        """Allocate more room for the columns that are full or nearly so, and move all entries there."""
        old, old8 = self.table.copy(), self.a8
        # Columns with an entry per row have room for all rows from the start.
        full = (self.table[:, COUNT] >= self.table[:, ROOM]) & (self.table[:, LEVEL] >= 0)
        full_data = (self.table[:, KIND] == VAR) & (self.table[:, DATA_COUNT] * 2 >= self.table[:, DATA_ROOM])
        if not full.any() and not full_data.any():
            full_data[:] = True  # one large entry did not fit
        self.table[full, ROOM] = self.table[full, ROOM] * 2 + 16
        self.table[full_data, DATA_ROOM] = self.table[full_data, DATA_ROOM] * 2 + 16
        if self.table[:, [ROOM, DATA_ROOM]].max() > INT32_MAX:
            raise UnsupportedSchema("the columns of this batch are too large: read fewer records at once")
        self._lay_out()
        for was, row in zip(old, self.table, strict=True):
            count, width = int(row[COUNT]), WIDTH_BYTES[row[KIND]]
            _move(old8, int(was[BASE]) * width, self.a8, int(row[BASE]) * width, (count + 1) * width)
            if row[VALID] >= 0:
                _move(old8, int(was[VALID]), self.a8, int(row[VALID]), count)
            if row[KIND] == VAR:
                _move(old8, int(was[DATA]), self.a8, int(row[DATA]), int(row[DATA_COUNT]))

    def array(self) -> pa.Array:
        """Return the columns as an Arrow array."""
        return self._array(self.root)

    def _array(self, column: OutputColumn) -> pa.Array:
        row = self.table[column.number]
        count = int(row[COUNT])
        if column.kind == NONE:
            return pa.nulls(count)
        buffers: list[pa.Buffer | None] = [self._validity(row)]
        width = WIDTH_BYTES[column.kind]
        begin = int(row[BASE]) * width
        if column.kind == W1:
            buffers.append(pa.py_buffer(np.packbits(self.a8[begin : begin + count], bitorder="little")))
        elif column.kind in (VAR, LIST):
            buffers.append(pa.py_buffer(self.a8[begin : begin + (count + 1) * width]))
        elif column.kind != STRUCT:
            buffers.append(pa.py_buffer(self.a8[begin : begin + count * width]))
        if column.kind == VAR:
            buffers.append(pa.py_buffer(self.a8[row[DATA] : row[DATA] + row[DATA_COUNT]]))
        return pa.Array.from_buffers(
            column.type, count, buffers, children=[self._array(below) for below in column.below] or None
        )

    def _validity(self, row: Longs) -> pa.Buffer | None:
        if row[VALID] < 0:
            return None
        there = self.a8[row[VALID] : row[VALID] + row[COUNT]]
        return None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def _move(source: Bytes, begin: int, to: Bytes, at: int, size: int) -> None:
    to[at : at + size] = source[begin : begin + size]
