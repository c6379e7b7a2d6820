"""Payloads that are text, in UTF-8."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ottla.columns.codec import DecodedColumns, UnsupportedSchema

_NO_UTF8 = "the text is not UTF-8"


class TextDecoder:
    """Decodes values that are text."""

    type = pa.string()

    def decode(self, values: pa.Array, begins: Any = 0) -> DecodedColumns:
        """Decode text; `begins` is not used, because there is no schema id before text."""
        try:
            return DecodedColumns(values.cast(pa.string()), {})
        except pa.ArrowInvalid:
            pass
        reasons: dict[int, str] = {}
        made: list[str | None] = []
        for row, value in enumerate(values.to_pylist()):
            try:
                made.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                made.append(None)
                reasons[row] = _NO_UTF8
        return DecodedColumns(pa.array(made, pa.string()), reasons)


class TextEncoder:
    """Encodes columns that have an unambiguous text: the same as Spark's CAST AS STRING."""

    def fits(self, of: pa.DataType) -> None:
        """Raise UnsupportedSchema for columns that have to be cast first."""
        kinds = pa.types
        is_text = kinds.is_string(of) or kinds.is_large_string(of) or kinds.is_binary(of) or kinds.is_large_binary(of)
        if not (is_text or kinds.is_integer(of) or kinds.is_boolean(of) or kinds.is_date(of) or kinds.is_null(of)):
            raise UnsupportedSchema(f"a column of type {of} is no text: cast it to STRING")

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """Encode text; `prefix` is not used, because there is no schema id before text."""
        self.fits(columns.type)
        if pa.types.is_binary(columns.type) or pa.types.is_large_binary(columns.type):
            for row in sorted(TextDecoder().decode(columns).reasons)[:1]:
                raise ValueError(f"row {row}: {_NO_UTF8}")
        return columns.cast(pa.string()).cast(pa.binary())
