"""Arrow types for Avro types: the mapping of Spark's `from_avro`, so that columns are interchangeable with Spark's.

As there, UUIDs, durations, times of day in milliseconds and timestamps in nanoseconds have the type that carries them
(string, bytes, int, long).
"""

from __future__ import annotations

import pyarrow as pa

from ottla.columns.avro.nodes import AvroNode
from ottla.columns.codec import UnsupportedSchema

DECIMAL_DIGITS_MAX = 38

_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "time-micros": pa.time64("ns"),
    "interval": pa.duration("us"),
}


def is_nullable(node: AvroNode) -> bool:
    """Return whether values of the type may be null."""
    return node.kind == "null" or any(branch.kind == "null" for branch in node.branches)


def without_null(node: AvroNode) -> tuple[AvroNode, ...]:
    """Return the branches of a union that are not null."""
    return tuple(branch for branch in node.branches if branch.kind != "null")


def is_members(node: AvroNode) -> bool:
    """Return whether a union becomes a struct of `member0`, `member1`, ... of which one is set."""
    return node.kind == "union" and len(without_null(node)) > 1 and merged_kind(node) is None


def merged_kind(node: AvroNode) -> str | None:
    """Return the number type that a union of two number types is read as, else None."""
    kinds = {branch.kind for branch in without_null(node)}
    if len(without_null(node)) == 2 and kinds in ({"int", "long"}, {"float", "double"}):
        return "long" if "long" in kinds else "double"
    return None


def arrow_type(node: AvroNode) -> pa.DataType:
    """Return the type of a node's column. Raises UnsupportedSchema."""
    if node.logical == "decimal":
        if node.precision > DECIMAL_DIGITS_MAX:
            raise UnsupportedSchema(f"a decimal has {node.precision} digits; columns hold {DECIMAL_DIGITS_MAX}")
        return pa.decimal128(node.precision, node.scale)
    if node.kind in _PRIMITIVES:
        return _LOGICAL.get(node.logical, _PRIMITIVES[node.kind])
    if node.kind == "array":
        return pa.list_(pa.field("element", arrow_type(node.item), is_nullable(node.item)))
    if node.kind == "map":
        value = pa.field("value", arrow_type(node.item), is_nullable(node.item))
        return pa.map_(pa.field("key", pa.string(), nullable=False), value)
    if node.kind == "record":
        return pa.struct([pa.field(each.name, arrow_type(each.node), is_nullable(each.node)) for each in node.fields])
    members = without_null(node)
    if merged := merged_kind(node):
        return _PRIMITIVES[merged]
    if not members:
        return pa.null()
    if len(members) == 1:
        return arrow_type(members[0])
    return pa.struct([pa.field(f"member{index}", arrow_type(each)) for index, each in enumerate(members)])
