"""The JSON schema to register for columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.schema import SchemaSource, SchemaType

_LEAVES = {
    pa.types.is_signed_integer: {"type": "integer"},
    pa.types.is_boolean: {"type": "boolean"},
    pa.types.is_floating: {"type": "number"},
    pa.types.is_decimal: {"type": "number"},
    pa.types.is_string: {"type": "string"},
    pa.types.is_large_string: {"type": "string"},
    pa.types.is_binary: {"type": "string", "contentEncoding": "base64"},
    pa.types.is_large_binary: {"type": "string", "contentEncoding": "base64"},
    pa.types.is_date: {"type": "string", "format": "date"},
    pa.types.is_timestamp: {"type": "string", "format": "date-time"},
    pa.types.is_null: {"type": "null"},
}


def derive_json(of: pa.DataType, name: str) -> SchemaSource:
    """Return the schema to register for columns of a type. Raises UnsupportedSchema for types without a JSON
    equivalent.
    """
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **schema_of(of)}
    return SchemaSource(json.dumps(schema), SchemaType.JSON)


def schema_of(of: pa.DataType) -> dict[str, Any]:
    """Return the schema of values of a type. Nullable fields may be absent; nullable items may be null."""
    kinds = pa.types
    if kinds.is_map(of):
        if not is_leaf(of.key_type):
            raise UnsupportedSchema(f"JSON has no names of type {of.key_type}: cast the keys of the map to text")
        return {"type": "object", "additionalProperties": _item(of.item_field)}
    if kinds.is_list(of) or kinds.is_large_list(of):
        return {"type": "array", "items": _item(of.value_field)}
    if kinds.is_struct(of) and len(of):
        made: dict[str, Any] = {"type": "object", "properties": {field.name: schema_of(field.type) for field in of}}
        required = [field.name for field in of if not field.nullable]
        return {**made, "required": required} if required else made
    for is_kind, schema in _LEAVES.items():
        if is_kind(of):
            return dict(schema)
    raise UnsupportedSchema(f"JSON has no type for {of}")


def is_leaf(of: pa.DataType) -> bool:
    """Return whether values of a type have no parts."""
    return any(is_kind(of) for is_kind in _LEAVES)


def _item(field: pa.Field) -> dict[str, Any]:
    schema = schema_of(field.type)
    return {"oneOf": [{"type": "null"}, schema]} if field.nullable and schema != {"type": "null"} else schema
