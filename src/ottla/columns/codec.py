"""The interface of decoders and encoders of every format: from payloads to typed Arrow columns, and back.

Rules:
- A value that does not match its schema makes its own row null, with a reason; it never fails the batch.
- A null value is a null row and not an error.
- Types are those of Spark's own functions (`from_avro`, `from_protobuf`): results are interchangeable with theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from numpy.typing import NDArray

from ottla.schemas.schema import UnsupportedSchema as UnsupportedSchema


class DecodedColumns(NamedTuple):
    """One row per value. `reasons` says why a row is null though its value is not: row → sentence."""

    columns: pa.Array
    reasons: Mapping[int, str]


class Decoder(Protocol):
    """Decodes payloads of one schema to columns of a (maybe other, newer) schema."""

    @property
    def type(self) -> pa.DataType:
        """A struct for records, messages and objects; for other schemas the type itself."""
        ...

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> DecodedColumns:
        """Decode a binary array; the payload of each value begins at the byte `begins` (after a schema id, say)."""
        ...


class Encoder(Protocol):
    """Encodes columns as payloads of one schema."""

    def fits(self, of: pa.DataType) -> None:
        """Raise ValueError if columns of a type cannot be written by this schema."""
        ...

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Return a binary array: each row's payload after `prefix`; null if the row is null. Raises ValueError, with
        the row, for a value that the schema cannot hold.
        """
        ...


def decode_each(decoder: Decoder, values: pa.Array, begins: NDArray[Any]) -> DecodedColumns:
    """Decode; if that fails as a whole, which should never happen, bisect to find the rows that fail: they are bad,
    the others are not. An error because the batch is too large is raised.
    """
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
