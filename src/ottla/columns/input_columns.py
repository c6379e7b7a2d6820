"""Arrow columns in the form that compiled loops read: all buffers in one array, and a table of the columns' places.

The other direction of `columns.arena`. Columns are added parents first, and get their numbers in that order. An entry
of a struct has the same number in the columns below it; a list's offsets give its items in the next column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.columns.loops import Bytes, Doubles, Floats, Ints, Longs

# Fields of the table: place of the validity bytes (-1: no nulls), of the entries in units of their width, of the data.
VALID, BASE, DATA = range(3)

_ALIGNMENT_BYTES = 16


class InputBuffers(NamedTuple):
    """The input of compiled loops: the table, and the buffers seen as bytes and as numbers."""

    table: Longs
    a8: Bytes
    a32: Ints
    a64: Longs
    f32: Floats
    f64: Doubles


class InputColumns:
    """Collects the buffers of columns."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, Any]] = []
        self._size_bytes = 0
        self._rows: list[tuple[int, int, int]] = []

    def struct(self, array: pa.Array) -> None:
        """Add a column of which only the validity is needed."""
        self._rows.append((self._validity(array), 0, 0))

    def fixed(self, array: pa.Array, width_bytes: int) -> None:
        """Add a column of numbers of a width; booleans as bytes."""
        if pa.types.is_boolean(array.type):
            data: Any = _bits(array.buffers()[1], array.offset, len(array))
        else:
            whole = _bytes(array.buffers()[1])
            data = whole[array.offset * width_bytes : (array.offset + len(array)) * width_bytes]
        self._rows.append((self._validity(array), self._add(data) // width_bytes, 0))

    def text(self, array: pa.Array) -> None:
        """Add a column of strings or bytes, with offsets of 32 bits."""
        _, ends, data = array.buffers()
        offsets = _offsets(ends, array)
        begin, end = int(offsets[0]), int(offsets[-1])
        base = self._add(offsets) // 4
        self._rows.append((self._validity(array), base, self._add(_bytes(data)[begin:end]) - begin))

    def list(self, array: pa.Array) -> tuple[int, int]:
        """Add a column of lists or maps; return the range of its items, (begin, count), that has to be added next."""
        offsets = _offsets(array.buffers()[1], array)
        begin = int(offsets[0])
        self._rows.append((self._validity(array), self._add(offsets - np.int32(begin)) // 4, 0))
        return begin, int(offsets[-1]) - begin

    def made(self) -> InputBuffers:
        """Return all added columns in the form that compiled loops read."""
        a8 = np.empty(-(-self._size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES, np.uint8)
        for begin, data in self._parts:
            part = data.view(np.uint8)
            a8[begin : begin + len(part)] = part
        table = np.array(self._rows, np.int64).reshape(-1, 3)
        return InputBuffers(table, a8, a8.view(np.int32), a8.view(np.int64), a8.view(np.float32), a8.view(np.float64))

    def _validity(self, array: pa.Array) -> int:
        if not array.null_count:
            return -1
        bitmap = array.buffers()[0]
        if bitmap is None:  # an array of type null
            return self._add(np.zeros(len(array), np.uint8))
        return self._add(_bits(bitmap, array.offset, len(array)))

    def _add(self, data: Any) -> int:
        begin = self._size_bytes
        self._parts.append((begin, data))
        self._size_bytes += -(-data.nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        return begin


def _bytes(buffer: pa.Buffer | None) -> Bytes:
    return np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)


def _bits(buffer: pa.Buffer, offset: int, count: int) -> Bytes:
    first = offset // 8
    packed = _bytes(buffer)[first : (offset + count + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[offset - first * 8 :][:count]


def _offsets(buffer: pa.Buffer, array: pa.Array) -> Ints:
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32)[array.offset : array.offset + len(array) + 1]
