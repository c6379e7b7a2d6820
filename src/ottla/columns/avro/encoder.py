"""Columns → Avro payloads: combines schema, program, input columns and loop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ottla.columns.avro.nodes import parse_nodes
from ottla.columns.avro.write_ops import NO_ROOM, REASONS, WriteProgram
from ottla.columns.avro.write_program import Take, compile_write
from ottla.columns.avro.write_run import write
from ottla.columns.avro.write_types import AvroMismatch
from ottla.columns.input_columns import InputColumns
from ottla.columns.loops import frozen_bytes
from ottla.model.limits import INT32_MAX
from ottla.schemas.schema import SchemaSource


class AvroEncoder:
    """Encodes columns as payloads of one schema."""

    def __init__(self, schema: SchemaSource) -> None:
        self._node = parse_nodes(schema)
        self._compiled: tuple[pa.DataType, WriteProgram, Take] | None = None

    def fits(self, of: pa.DataType) -> None:
        """Raise AvroMismatch if columns of a type cannot be written by this schema."""
        self._program(of)

    def _program(self, of: pa.DataType) -> tuple[WriteProgram, Take]:
        if self._compiled is None or self._compiled[0] != of:
            self._compiled = (of, *compile_write(self._node, of))
        return self._compiled[1:]

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """See `columns.codec`."""
        program, take = self._program(columns.type)
        inputs = InputColumns()
        take(columns, inputs)
        given = inputs.made()
        ends = np.zeros(len(columns) + 1, np.int32)
        stack = np.zeros(2 * program.depth + 2, np.int64)
        before = frozen_bytes(prefix)
        # Offsets have 32 bits, so the output never needs to be larger than that.
        likely = len(given.a8) + len(columns) * (len(prefix) + 16) + 64
        to = np.empty(min(likely, INT32_MAX), np.uint8)
        row = 0
        while True:
            row, why, place = write(program.code, given, before, to, ends, stack, row)
            if why == NO_ROOM:
                if len(to) == INT32_MAX:
                    raise AvroMismatch("the payloads of this batch are too large: write fewer rows at once")
                to = np.concatenate([to, np.empty(min(len(to), INT32_MAX - len(to)), np.uint8)])
            elif why:
                raise AvroMismatch(f"row {row}: {program.paths[place] or 'the value'} {REASONS[why]}")
            else:
                break
        validity = None
        if columns.null_count:
            validity = pa.py_buffer(np.packbits(columns.is_valid().to_numpy(zero_copy_only=False), bitorder="little"))
        buffers = [validity, pa.py_buffer(ends), pa.py_buffer(to[: ends[-1]])]
        return pa.Array.from_buffers(pa.binary(), len(columns), buffers)


def encoder(schema: SchemaSource) -> AvroEncoder:
    """Return an `AvroEncoder`. Raises InvalidSchema, UnsupportedSchema."""
    return AvroEncoder(schema)
