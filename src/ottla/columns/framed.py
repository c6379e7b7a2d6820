"""Decode a column of values with schema ids: rows are grouped by their schema, each group is decoded, and the results
are put back in order.

There is one reader schema, so the column has one type, whatever schemas the values were written with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.columns.codec import DecodedColumns, Decoder, decode_each
from ottla.columns.schema_ids import NULL, PLAIN, Frames, SchemaMark, frames
from ottla.schemas.schema import SchemaType

# Returns the decoder for a schema id, or the reason why its rows are bad; "" gives them none.
DecoderOf = Callable[[SchemaMark], Decoder | str]


def decode_framed(
    values: pa.Array,
    headers: pa.Array | None,
    reader: SchemaType,
    own: Callable[[], Decoder],
    decoder_of: DecoderOf,
    *,
    of_key: bool,
) -> DecodedColumns:
    """Decode one column to a schema of the type `reader`; `own` returns the decoder of values without a schema id."""
    with_message, plain = reader is SchemaType.PROTOBUF, reader is SchemaType.JSON
    found = frames(values, headers, of_key=of_key, with_message=with_message, plain=plain)
    if len(found.marks) == 1 and not (found.which < NULL).any():
        decoder = decoder_of(found.marks[0])
        if not isinstance(decoder, str):
            return decode_each(decoder, values, found.begins)
    return _decode_groups(values, found, own, decoder_of)


def _decode_groups(
    values: pa.Array, found: Frames, own: Callable[[], Decoder], decoder_of: DecoderOf
) -> DecodedColumns:
    reasons = dict(found.reasons)
    parts: list[pa.Array] = []
    order: list[Any] = []
    for number in np.unique(found.which):
        rows = np.flatnonzero(found.which == number)
        decoder: Decoder | str = ""
        if number >= 0:
            decoder = decoder_of(found.marks[number])
        elif number == PLAIN:
            decoder = own()
        if isinstance(decoder, str):
            parts.append(pa.nulls(len(rows), own().type))
            reasons.update({int(row): decoder for row in rows} if decoder else {})
        else:
            decoded = decode_each(decoder, values.take(pa.array(rows)), found.begins[rows])
            parts.append(decoded.columns)
            reasons.update({int(rows[row]): why for row, why in decoded.reasons.items()})
        order.append(rows)
    if not parts:
        return DecodedColumns(pa.nulls(0, own().type), {})
    back = np.argsort(np.concatenate(order))
    return DecodedColumns(pa.concat_arrays(parts).take(pa.array(back)), reasons)
