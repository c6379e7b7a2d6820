"""JSON payloads → columns: whole batches by pyarrow, and row by row what it cannot.

pyarrow reads lines, so each value must be exactly one object. That is made sure of: each begins with `{` and ends with
`}` (the loop checks it), and there must come out as many rows as went in; an object cannot begin right behind `}` but
at the top, so no value can be read as a part of another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from numpy.typing import NDArray

from ottla.columns.codec import Decoded
from ottla.columns.json.rows import converter, loads
from ottla.columns.json.types import field_of, is_any, plain
from ottla.columns.loops import Bytes, compiled
from ottla.columns.payloads import Payloads
from ottla.schemas.schema import Source

# So many rows are rather read one by one than halved again.
_FEW = 32


@compiled
def join(given: Payloads, lines: Bytes) -> Any:
    """Values without the blanks around them as lines: how many bytes that makes; -1 if one is no object by its looks.

    Null values become empty objects.
    """
    to = 0
    for row in range(len(given.begins)):
        at, end = given.begins[row], given.ends[row]
        if not given.there[row]:
            lines[to], lines[to + 1], lines[to + 2] = 123, 125, 10
            to += 3
            continue
        while at < end and given.data[at] <= 32:
            at += 1
        while at < end and given.data[end - 1] <= 32:
            end -= 1
        if end - at < 2 or given.data[at] != 123 or given.data[end - 1] != 125:
            return -1
        for index in range(at, end):
            lines[to] = given.data[index]
            to += 1
        lines[to] = 10
        to += 1
    return to


class JsonDecoder:
    """Values by a JSON schema."""

    def __init__(self, schema: Source) -> None:
        self._field = field_of(schema)
        self._type = plain(self._field).type
        self._convert = converter(self._field)
        self._at_once = pa.types.is_struct(self._type) and _is_simple(self._field)

    @property
    def type(self) -> pa.DataType:
        """A struct for objects; for others the type itself."""
        return self._type

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> Decoded:
        """See `columns.codec`."""
        given = Payloads.of(values, begins)
        if not self._at_once or not len(values):
            return self._one_by_one(given)
        parts: list[pa.Array] = []
        reasons: dict[int, str] = {}
        todo = [(0, len(values))]
        while todo:
            begin, end = todo.pop()
            part = given.part(begin, end)
            made = self._read(part)
            if made is None and end - begin > _FEW:
                middle = (begin + end) // 2
                todo += [(middle, end), (begin, middle)]  # bad rows are few: all others are still read at once
                continue
            if made is None:
                made, why = self._one_by_one(part)
                reasons.update({begin + row: each for row, each in why.items()})
            parts.append(made)
        return Decoded(parts[0] if len(parts) == 1 else pa.concat_arrays(parts), reasons)

    def _read(self, given: Payloads) -> pa.Array | None:
        """All at once; None if anything is unusual."""
        lines = np.empty(given.size_bytes + 3 * len(given.begins) + 16, np.uint8)
        size = join(given, lines)
        if size < 0:
            return None
        block = pj.ReadOptions(use_threads=False, block_size=size + 1)
        parse = pj.ParseOptions(pa.schema(list(self._type)), True, "ignore")
        try:
            pa.array([lines[:size].tobytes()], pa.binary()).cast(pa.string())  # checks that it is UTF-8
            table = pj.read_json(pa.BufferReader(pa.py_buffer(lines[:size])), block, parse)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != len(given.begins) or table.schema.types != [field.type for field in self._type]:
            return None
        batch = table.combine_chunks().to_batches()[0]
        mask = None if given.there.all() else pa.array(~given.there)
        return pa.StructArray.from_arrays(batch.columns, fields=list(self._type), mask=mask)

    def _one_by_one(self, given: Payloads) -> Decoded:
        made: list[Any] = []
        reasons: dict[int, str] = {}
        for row, (there, at, end) in enumerate(
            zip(given.there.tolist(), given.begins.tolist(), given.ends.tolist(), strict=True)
        ):
            try:
                made.append(self._convert(loads(given.data[at:end].tobytes())) if there else None)
            except (ValueError, RecursionError) as error:
                made.append(None)
                reasons[row] = str(error) if not isinstance(error, RecursionError) else "nested too deeply"
        return Decoded(pa.array(made, self._type), reasons)


def _is_simple(field: pa.Field) -> bool:
    """Whether pyarrow parses a type as we do."""
    of = field.type
    if is_any(field):
        return False
    if pa.types.is_struct(of):
        return len(of) > 0 and all(_is_simple(each) for each in of)
    if pa.types.is_list(of):
        return _is_simple(of.value_field)
    return of in (pa.int64(), pa.float64(), pa.bool_(), pa.string())


def decoder(writer: Source, reader: Source | None = None) -> JsonDecoder:
    """Values as the reader's schema says; JSON names its fields, so the writer's is of no account.

    Raises InvalidSchema, UnsupportedSchema.
    """
    return JsonDecoder(reader or writer)
