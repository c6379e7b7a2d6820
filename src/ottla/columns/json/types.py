"""Arrow types of JSON Schema: those of `schemas.json.shapes`, all nullable."""

from __future__ import annotations

import pyarrow as pa

from ottla.schemas.json.shapes import Kind, Shape

_LEAVES = {
    Kind.NOTHING: pa.null(),
    Kind.LONG: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.STRING: pa.string(),
    Kind.MOMENT: pa.timestamp("us", tz="UTC"),
    Kind.DAY: pa.date32(),
    Kind.BYTES: pa.binary(),
    Kind.ANY: pa.string(),
}


def arrow_type(shape: Shape) -> pa.DataType:
    """The type of the columns that hold values of a shape."""
    if shape.kind is Kind.STRUCT:
        return pa.struct([pa.field(name, arrow_type(each)) for name, each in shape.fields])
    if shape.kind is Kind.LIST:
        return pa.list_(pa.field("element", arrow_type(shape.item)))
    if shape.kind is Kind.MAP:
        return pa.map_(pa.string(), pa.field("value", arrow_type(shape.item)))
    return _LEAVES[shape.kind]
