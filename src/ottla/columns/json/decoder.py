"""JSON payloads → columns: combines schema, program, arena and loop.

The loop finds the rows that are bad; the reason comes from the code that checks records for producers (`schemas.json`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.columns.arena import Arena
from ottla.columns.codec import DecodedColumns
from ottla.columns.json.numbers import read_hard
from ottla.columns.json.program import program_of
from ottla.columns.json.run import JsonScratch, run
from ottla.columns.json.scan import LINES_AHEAD
from ottla.columns.json.types import arrow_type
from ottla.columns.payloads import Payloads
from ottla.columns.push import undo
from ottla.columns.shape import BASE, columns_of
from ottla.model.limits import JSON_DEPTH_MAX
from ottla.schemas.json.fit import Unfit, check_of
from ottla.schemas.json.payload import NotJson, parse
from ottla.schemas.json.shapes import shape_of
from ottla.schemas.schema import SchemaSource


class JsonDecoder:
    """Decodes values by a JSON schema."""

    def __init__(self, schema: SchemaSource) -> None:
        shape = shape_of(schema)
        self._root = columns_of(arrow_type(shape))
        self._code = program_of(shape, self._root)
        self._check = check_of(shape)

    @property
    def type(self) -> pa.DataType:
        """A struct for objects; for other schemas the type itself."""
        return self._root.type

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> DecodedColumns:
        """See `columns.codec`."""
        given = Payloads.of(values, begins)
        rows = len(given.begins)
        arena = Arena(self._root, rows, given.size_bytes)
        room = self._scratch(given)
        bad = np.zeros(rows, np.bool_)
        row = 0
        while True:
            row = run(self._code, given, room, arena.out, row, bad)
            if row == rows:
                break
            arena.grow()
            undo(arena.out, row)
        hard = room.hard[: room.counts[0]]
        if len(hard):
            places = arena.table[hard[:, 2], BASE] + hard[:, 3]
            arena.out.f64[places] = read_hard(given.data, hard)
        reasons = {int(each): self._why(given, int(each)) for each in np.flatnonzero(bad)}
        return DecodedColumns(arena.array(), reasons)

    def _scratch(self, given: Payloads) -> JsonScratch:
        """Allocate memory for the worst case: unused memory is never touched, so it costs address space only."""
        largest = int((given.ends - given.begins).max(initial=0))
        largest = max(largest, 0)
        # Every value takes a byte, and one before the next or after it; but each open bracket takes only one byte.
        lines = largest // 2 + min(largest, JSON_DEPTH_MAX) + LINES_AHEAD
        nodes = len(self._code.lines) + len(self._code.fields)
        return JsonScratch(
            tape=np.empty((lines, 4), np.int64),
            chars=np.empty(largest + 4, np.uint8),
            around=np.empty(JSON_DEPTH_MAX, np.int64),
            work=np.empty((lines + nodes, 2), np.int64),
            places=np.empty(len(self._code.fields), np.int64),
            seen=np.empty(4 * lines + 4, np.int64),
            hard=np.empty((given.size_bytes // 4 + 1, 4), np.int64),
            counts=np.zeros(1, np.int64),
        )

    def _why(self, given: Payloads, row: int) -> str:
        try:
            self._check(parse(given.data[given.begins[row] : given.ends[row]].tobytes()))
        except NotJson as error:
            return f"this is not JSON: {error}"
        except Unfit as error:
            return str(error)
        return "this is not JSON of this schema"


def decoder(writer: SchemaSource, reader: SchemaSource | None = None) -> JsonDecoder:
    """Return a decoder by the reader's schema; JSON has the names of fields, so the writer's schema is not used.

    Raises InvalidSchema, UnsupportedSchema.
    """
    return JsonDecoder(reader or writer)
