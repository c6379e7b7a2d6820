"""What keys and values are for SQL: typed by the registry's schema, text, or bytes as they are."""

from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc


class PayloadColumns(Protocol):
    """Binary columns made into what a query sees."""

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, column: pa.Array) -> pa.Array: ...


class Raw:
    """Bytes as they are."""

    type = pa.binary()

    def decode(self, column: pa.Array) -> pa.Array:
        return column


class TextColumns:
    """UTF-8; what is none is shown with replacement characters, not refused."""

    type = pa.string()

    def decode(self, column: pa.Array) -> pa.Array:
        try:
            return pc.cast(column, pa.string())
        except pa.ArrowInvalid:
            return pa.array(
                [None if value is None else value.decode("utf-8", "replace") for value in column.to_pylist()],
                pa.string(),
            )
