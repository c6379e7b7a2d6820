"""Which types of columns may be written as which Avro types, and how entries become values.

The table is that of Spark's `to_avro`, and tests compare every cell with it (tests/columns/avro/test_spark.py).

Rules:
- Integers are written as they are, whatever the logical type is: an integer is assumed to be in its unit already.
- Timestamps have a unit. They are written in the unit of the schema (parts of a millisecond are cut off, downwards),
  in milliseconds where the schema has a plain long; where it has another kind of time, they are refused.
- Where Spark refuses and no value could change, a column is written: into a wider number (not one that is a time), into
  a decimal with more digits, as null if all its values are null.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from ottla.columns.avro import write_ops as ops
from ottla.columns.avro.nodes import AvroNode
from ottla.columns.avro.types import arrow_type
from ottla.columns.names import sql_name


class AvroMismatch(ValueError):
    """Columns cannot be written by the schema."""


class Way(NamedTuple):
    """How a column is written: cast to `target`, which can hold all its values, then by an instruction."""

    target: pa.DataType
    op: int
    a: int = 1


_INTS = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_MICROS, _LOCAL_MICROS = pa.timestamp("us", tz="UTC"), pa.timestamp("us")

# The divisor for each kind of time, by the logical type of a long that accepts it ("": none).
_TIMES: dict[pa.DataType, dict[str, int]] = {
    _MICROS: {"": 1000, "timestamp-millis": 1000, "timestamp-micros": 1},
    _LOCAL_MICROS: {"": 1000, "local-timestamp-millis": 1000, "local-timestamp-micros": 1},
    pa.time64("ns"): {"time-micros": 1000},
    pa.duration("us"): {"": 1, "interval": 1},
}
_PLAIN = {
    "boolean": ((pa.bool_(),), pa.bool_(), ops.BOOLEAN),
    "float": ((pa.float32(),), pa.float32(), ops.FLOAT),
    "double": ((pa.float32(), pa.float64()), pa.float64(), ops.DOUBLE),
}


def way(of: pa.DataType, node: AvroNode, path: str) -> Way:
    """Return how a column of a type is written as a value without structure. Raises AvroMismatch."""
    plain = of.value_type if pa.types.is_dictionary(of) else of
    found = _null(node) if pa.types.is_null(plain) else _way(plain, node)
    if found is None:
        raise refused(of, node, path)
    return found


def refused(of: pa.DataType, node: AvroNode, path: str) -> AvroMismatch:
    """Return the error that names the column, its type, the type in the schema, and what to do."""
    if node.kind in ("array", "map", "record"):
        remedy = "give it that shape"
    elif pa.types.is_nested(of):
        remedy = "choose one of its fields or items, or write it as text (to_json)"
    else:
        remedy = f"cast it to {sql_name(arrow_type(node))}"
    return AvroMismatch(f"{path or 'the value'} is {sql_name(of)}, which is not written as {_named(node)}: {remedy}")


def _way(of: pa.DataType, node: AvroNode) -> Way | None:
    match node.kind:
        case "int":
            if of in _INTS:
                return Way(pa.int32(), ops.INT)
            return Way(of, ops.INT) if of == pa.date32() and node.logical in ("", "date") else None
        case "long":
            is_number = of == pa.int64() or (of in (*_INTS, pa.uint32()) and not node.logical)
            return Way(pa.int64(), ops.LONG) if is_number else _time(of, node.logical)
        case "bytes" | "fixed":
            return _bytes(of, node)
        case "string" | "enum":
            return Way(pa.string(), ops.BYTES if node.kind == "string" else ops.ENUM) if _is_text(of) else None
        case "boolean" | "float" | "double":
            taken, target, op = _PLAIN[node.kind]
            return Way(target, op) if of in taken else None
        case _:
            return None


def _time(of: pa.DataType, logical: str) -> Way | None:
    target = of
    if pa.types.is_timestamp(of):
        target = _LOCAL_MICROS if of.tz is None else _MICROS
    divisor = _TIMES.get(target, {}).get(logical)
    return None if divisor is None else Way(target, ops.LONG, divisor)


def _bytes(of: pa.DataType, node: AvroNode) -> Way | None:
    kinds = pa.types
    size = node.size if node.kind == "fixed" else -1
    if kinds.is_binary(of) or kinds.is_large_binary(of) or kinds.is_fixed_size_binary(of):
        return Way(pa.binary(), ops.BYTES if size < 0 else ops.FIXED, size)
    if node.logical != "decimal" or not kinds.is_decimal(of):
        return None
    holds_all = node.scale >= of.scale and node.precision - node.scale >= of.precision - of.scale
    return Way(pa.decimal128(node.precision, node.scale), ops.DECIMAL, size) if holds_all else None


def _null(node: AvroNode) -> Way | None:
    """Return how a column without any value is written: as null."""
    target = arrow_type(node)
    return _way(target, node)


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _named(node: AvroNode) -> str:
    if node.logical == "decimal":
        return f"Avro's decimal({node.precision},{node.scale})"
    return f"Avro's {node.logical or node.kind}"
