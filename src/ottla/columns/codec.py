"""What decoders and encoders of every format are: payloads in, typed Arrow columns out, and the way back.

Rules:
- A value that its schema does not describe makes its own row null, with a reason; never the batch fail.
- A null value is a null row and nothing bad.
- Types are those of Spark's own functions (`from_avro`, `from_protobuf`): results are interchangeable with theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from numpy.typing import NDArray

from ottla.schemas.schema import UnsupportedSchema as UnsupportedSchema


class DecodedColumns(NamedTuple):
    """A row per value. `reasons` says why rows are null that should not be: row → sentence."""

    columns: pa.Array
    reasons: Mapping[int, str]


class Decoder(Protocol):
    """Payloads of one schema, as columns of a (maybe other, newer) schema."""

    @property
    def type(self) -> pa.DataType:
        """A struct for records, messages and objects; for others the type itself."""
        ...

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> DecodedColumns:
        """Decode a binary array; each payload begins so many bytes into its value (after a schema id, say)."""
        ...


class Encoder(Protocol):
    """Columns as payloads of one schema."""

    def fits(self, of: pa.DataType) -> None:
        """Raises ValueError if columns of a type cannot be written by this schema."""
        ...

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """A binary array: each row's payload after `prefix`; null where the row is. Raises ValueError, with the row,
        for what the schema cannot hold."""
        ...


def decode_each(decoder: Decoder, values: pa.Array, begins: NDArray[Any]) -> DecodedColumns:
    """Decode; and if that fails as a whole, which it never should, find the rows that are to blame: they are bad, the
    others are not. What the batch as a whole is too large for is no row's fault."""
    try:
        return decoder.decode(values, begins)
    except (UnsupportedSchema, MemoryError):
        raise
    except Exception as error:
        if len(values) == 1:
            return DecodedColumns(
                pa.nulls(1, decoder.type), {0: f"it cannot be decoded: {type(error).__name__} {error}"}
            )
    middle = len(values) // 2
    first = decode_each(decoder, values[:middle], begins[:middle])
    second = decode_each(decoder, values[middle:], begins[middle:])
    reasons = {**first.reasons, **{middle + row: why for row, why in second.reasons.items()}}
    return DecodedColumns(pa.concat_arrays([first.columns, second.columns]), reasons)
