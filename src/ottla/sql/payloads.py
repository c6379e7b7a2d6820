"""Keys and values as columns for SQL: typed by the registry's schema, as text, or as bytes."""

from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc


class PayloadColumns(Protocol):
    """Decodes binary columns to the type that a query sees."""

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, column: pa.Array) -> pa.Array: ...


class Raw:
    """Bytes, unchanged."""

    type = pa.binary()

    def decode(self, column: pa.Array) -> pa.Array:
        return column


class TextColumns:
    """UTF-8 text; invalid bytes become replacement characters."""

    type = pa.string()

    def decode(self, column: pa.Array) -> pa.Array:
        try:
            return pc.cast(column, pa.string())
        except pa.ArrowInvalid:
            return pa.array(
                [None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist()],
                pa.string(),
            )
