"""Arrow types of JSON Schema: those of `schemas.json.shapes`, all nullable."""

from __future__ import annotations

import pyarrow as pa

from ottla.schemas.json.shapes import JsonShape, ShapeKind

_LEAVES = {
    ShapeKind.NOTHING: pa.null(),
    ShapeKind.LONG: pa.int64(),
    ShapeKind.DOUBLE: pa.float64(),
    ShapeKind.BOOLEAN: pa.bool_(),
    ShapeKind.STRING: pa.string(),
    ShapeKind.MOMENT: pa.timestamp("us", tz="UTC"),
    ShapeKind.DAY: pa.date32(),
    ShapeKind.BYTES: pa.binary(),
    ShapeKind.ANY: pa.string(),
}


def arrow_type(shape: JsonShape) -> pa.DataType:
    """Return the type of the columns that hold values of a shape."""
    if shape.kind is ShapeKind.STRUCT:
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in shape.fields])
    if shape.kind is ShapeKind.LIST:
        return pa.list_(pa.field("element", arrow_type(shape.item)))
    if shape.kind is ShapeKind.MAP:
        return pa.map_(pa.string(), pa.field("value", arrow_type(shape.item)))
    return _LEAVES[shape.kind]
