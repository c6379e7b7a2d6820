"""The schema of each value of a batch: reads the ids before values or in headers, for all rows at once.

The usual case (one id, before the value) costs a few numpy operations; headers, GUIDs and unusual message indexes of
Protobuf are read one by one.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.loops import Bools, Longs
from ottla.columns.payloads import Payloads
from ottla.schemas.framing import (
    FIRST_MESSAGE,
    FRAME_BYTES_MAX,
    ID_PREFIX_BYTES,
    KEY_HEADER,
    MAGIC_GUID,
    MAGIC_ID,
    VALUE_HEADER,
    BadFrame,
    unframe,
)


class SchemaMark(NamedTuple):
    """The identity of a schema; `message` only for Protobuf."""

    schema: int | UUID
    message: tuple[int, ...] = ()


class Frames(NamedTuple):
    """Per row: the index in `marks` (-1: the value is null; -2: it cannot be read, `reasons` says why; -3: there is
    none, the value is plain), and where its payload begins.
    """

    marks: tuple[SchemaMark, ...]
    which: Longs
    begins: Longs
    reasons: dict[int, str]


NULL, BAD, PLAIN = -1, -2, -3


def frames(values: pa.Array, headers: pa.Array | None, *, of_key: bool, with_message: bool, plain: bool) -> Frames:
    """Find the schema ids of all values. `plain`: a value that does not begin with a magic byte is not an error."""
    given = Payloads.of(values)
    count = len(values)
    which = np.full(count, BAD, np.int64)
    begins = np.zeros(count, np.int64)
    which[~given.there] = NULL
    found = _Marks()
    size = given.ends - given.begins
    first = _byte(given, 0)
    usual = given.there & (size >= ID_PREFIX_BYTES) & (first == MAGIC_ID)
    if with_message:
        usual &= (size > ID_PREFIX_BYTES) & (_byte(given, ID_PREFIX_BYTES) == 0)
    in_headers = _in_headers(headers, KEY_HEADER if of_key else VALUE_HEADER)
    for row in in_headers:
        usual[row] = False
    _usual(given, usual, found, which, begins, with_message)
    reasons: dict[int, str] = {}
    for index in np.flatnonzero(which == BAD).tolist():
        data = bytes(given.data[given.begins[index] : given.ends[index]][:FRAME_BYTES_MAX])
        if index not in in_headers and plain and not (data and data[0] in (MAGIC_ID, MAGIC_GUID)):
            which[index] = PLAIN
            continue
        try:
            framed = unframe(in_headers.get(index, data), with_indexes=with_message)
        except BadFrame as error:
            reasons[index] = str(error)
            continue
        schema = framed.schema_id if framed.schema_id is not None else framed.guid
        assert schema is not None
        which[index] = found.number(SchemaMark(schema, framed.message_indexes or ()))
        begins[index] = 0 if index in in_headers else framed.payload_begin
    return Frames(tuple(found.marks), which, begins, reasons)


class _Marks:
    def __init__(self) -> None:
        self.marks: dict[SchemaMark, int] = {}

    def number(self, mark: SchemaMark) -> int:
        return self.marks.setdefault(mark, len(self.marks))


def _byte(given: Payloads, place: int) -> Longs:
    """Return the byte at a place of each value; an arbitrary byte if the value is too short."""
    if not len(given.data):
        return np.full(len(given.begins), -1, np.int64)
    at = np.minimum(given.begins + place, len(given.data) - 1)
    return given.data[at].astype(np.int64)


def _usual(given: Payloads, usual: Bools, found: _Marks, which: Longs, begins: Longs, with_message: bool) -> None:
    """Read the ids before values."""
    if not usual.any():
        return
    ids = np.zeros(len(usual), np.int64)
    for place in range(1, ID_PREFIX_BYTES):
        ids = ids << 8 | _byte(given, place)
    usual &= ids < 2**31
    message = FIRST_MESSAGE if with_message else ()
    for each in np.unique(ids[usual]):
        which[usual & (ids == each)] = found.number(SchemaMark(int(each), message))
    begins[usual] = ID_PREFIX_BYTES + (1 if with_message else 0)


def _in_headers(headers: pa.Array | None, name: str) -> dict[int, bytes]:
    """Return the schema headers by row; the last such header of a row counts."""
    if headers is None or headers.null_count == len(headers):
        return {}
    flat = headers.flatten()
    hits = np.flatnonzero(pc.equal(flat.field("key"), name).to_numpy(zero_copy_only=False))
    if not len(hits):
        return {}
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False)
    rows = np.searchsorted(np.cumsum(counts), hits, side="right")
    marks = flat.field("value").take(pa.array(hits)).to_pylist()
    return {int(row): mark for row, mark in zip(rows, marks, strict=True) if mark is not None}
