"""SQL names of column types, as in Spark."""

from __future__ import annotations

import pyarrow as pa

_PLAIN = {
    pa.null(): "VOID",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.date32(): "DATE",
    pa.duration("us"): "INTERVAL DAY TO SECOND",
}


def is_variant(of: pa.DataType) -> bool:
    """Return whether a struct is Spark's representation of a VARIANT."""
    return bool(pa.types.is_struct(of)) and any((field.metadata or {}).get(b"variant") == b"true" for field in of)


def sql_name(of: pa.DataType) -> str:
    """Return the name of a column's type; Arrow's own for types that Spark does not have."""
    kinds = pa.types
    if is_variant(of):
        return "VARIANT"
    if kinds.is_timestamp(of):
        return "TIMESTAMP" if of.tz is not None else "TIMESTAMP_NTZ"
    if kinds.is_time64(of):
        return "TIME"
    if kinds.is_decimal(of):
        return f"DECIMAL({of.precision},{of.scale})"
    if kinds.is_map(of):
        return f"MAP<{sql_name(of.key_type)}, {sql_name(of.item_type)}>"
    if kinds.is_list(of) or kinds.is_large_list(of):
        return f"ARRAY<{sql_name(of.value_type)}>"
    if kinds.is_struct(of):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_name(field.type)}' for field in of)}>"
    return _PLAIN.get(of, str(of))
