"""Avro payloads → columns: combines schemas, program, arena and loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ottla.columns.arena import Arena
from ottla.columns.avro.nodes import parse_nodes
from ottla.columns.avro.ops import reason
from ottla.columns.avro.program import compile_program
from ottla.columns.avro.run import run
from ottla.columns.avro.types import arrow_type
from ottla.columns.codec import DecodedColumns
from ottla.columns.payloads import Payloads
from ottla.columns.push import undo
from ottla.columns.shape import columns_of
from ottla.schemas.schema import SchemaSource


class AvroDecoder:
    """Decodes payloads of the schema `writer` to columns of `reader` (default: the writer's own)."""

    def __init__(self, writer: SchemaSource, reader: SchemaSource | None = None) -> None:
        written = parse_nodes(writer)
        wanted = written if reader is None or reader == writer else parse_nodes(reader)
        self._root = columns_of(arrow_type(wanted))
        self._program = compile_program(written, wanted, self._root)

    @property
    def type(self) -> pa.DataType:
        """A struct for records; for other schemas the type itself."""
        return self._root.type

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> DecodedColumns:
        """See `columns.codec`."""
        given = Payloads.of(values, begins)
        rows = len(given.begins)
        arena = Arena(self._root, rows, given.size_bytes)
        program = self._program
        stack = np.zeros(program.depth + 1, np.int64)
        outcomes, places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        row = 0
        while True:
            row = run(program.code, given, arena.out, stack, row, outcomes, places)
            if row == rows:
                break
            arena.grow()
            undo(arena.out, row)
        bad = np.flatnonzero(outcomes)
        reasons = {int(each): reason(program, int(places[each]), int(outcomes[each])) for each in bad}
        return DecodedColumns(arena.array(), reasons)


def decoder(writer: SchemaSource, reader: SchemaSource | None = None) -> AvroDecoder:
    """Return an `AvroDecoder`. Raises InvalidSchema, UnsupportedSchema."""
    return AvroDecoder(writer, reader)
