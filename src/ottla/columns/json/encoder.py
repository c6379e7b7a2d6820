"""Columns → JSON payloads: the text of each column, for all rows at once, then all columns joined.

Null fields are left out. Times are text in ISO form, bytes are base64, decimals are numbers.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.schema import SchemaType, Source

_CONTROL = r"[\x00-\x1f]"
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_TIME = "%Y-%m-%dT%H:%M:%S"


class JsonEncoder:
    """Columns as JSON. The schema only gives payloads their id: what it says beyond types is for validators."""

    def __init__(self, schema: Source) -> None:
        self._schema = schema

    def fits(self, of: pa.DataType) -> None:
        """Raises UnsupportedSchema if there is no JSON for columns of a type."""
        _schema(of)

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """See `columns.codec`."""
        made = _texts(columns).cast(pa.binary())
        return pc.binary_join_element_wise(pa.scalar(prefix, pa.binary()), made, pa.scalar(b"", pa.binary()))


def _texts(array: pa.Array) -> pa.Array:
    """JSON text of each entry; null where it is."""
    of = array.type
    if pa.types.is_struct(of):
        return _objects(array)
    if pa.types.is_boolean(of) or pa.types.is_integer(of) or pa.types.is_decimal(of):
        return array.cast(pa.string())
    if pa.types.is_floating(of):
        if not pc.all(pc.is_finite(array), min_count=0).as_py():
            raise ValueError("JSON has no NaN and no infinity")
        return array.cast(pa.string())
    if pa.types.is_string(of) or pa.types.is_large_string(of):
        return _strings(array.cast(pa.string()))
    if pa.types.is_date(of):
        return _quoted(array.cast(pa.string()))
    if pa.types.is_timestamp(of):
        utc = array if of.tz is None else array.cast(pa.timestamp(of.unit, tz="UTC"))
        return _quoted(pc.strftime(utc, format=_TIME if of.tz is None else _TIME + "Z"))
    return pa.array([None if each is None else json.dumps(_plain(each, of)) for each in array.to_pylist()], pa.string())


def _objects(array: pa.Array) -> pa.Array:
    parts = [pa.array([""] * len(array), pa.string())]
    for index, field in enumerate(array.type):
        name = pa.scalar("," + json.dumps(field.name) + ":")
        part = pc.binary_join_element_wise(name, _texts(array.field(index)), "")
        parts.append(pc.fill_null(part, ""))
    begun = pc.binary_replace_slice(pc.binary_join_element_wise(*parts, ""), 0, 1, "{")  # the first comma
    made = pc.binary_join_element_wise(begun, "}", "")
    return made if not array.null_count else pc.if_else(array.is_valid(), made, pa.scalar(None, pa.string()))


def _strings(array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(array, _CONTROL), min_count=0).as_py():
        return pa.array([None if each is None else json.dumps(each) for each in array.to_pylist()], pa.string())
    for special in ("\\", '"'):
        if pc.any(pc.match_substring(array, special), min_count=0).as_py():
            array = pc.replace_substring(array, special, "\\" + special)
    return _quoted(array)


def _quoted(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', array, '"', "")


def _plain(value: Any, of: pa.DataType) -> Any:
    """A value of a list, map or binary column as json takes it."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return {str(key): _plain(each, of.item_type) for key, each in value}
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return [_plain(each, of.value_type) for each in value]
    if pa.types.is_struct(of):
        named = {field.name: _plain(value[field.name], field.type) for field in of}
        return {name: each for name, each in named.items() if each is not None}
    if pa.types.is_binary(of) or pa.types.is_large_binary(of):
        return base64.b64encode(value).decode()
    if pa.types.is_floating(of) and not np.isfinite(value):
        raise ValueError("JSON has no NaN and no infinity")
    if pa.types.is_timestamp(of) or pa.types.is_date(of) or pa.types.is_decimal(of):
        (text,) = _texts(pa.array([value], of)).to_pylist()
        return json.loads(text)
    return value


def derive_json(of: pa.DataType, name: str) -> Source:
    """The schema to register for columns of a type. Raises UnsupportedSchema for what JSON cannot say."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **_schema(of)}
    return Source(json.dumps(schema), SchemaType.JSON)


def _schema(of: pa.DataType) -> dict[str, Any]:
    kinds = pa.types
    if of in _INTEGERS:
        return {"type": "integer"}
    if kinds.is_boolean(of):
        return {"type": "boolean"}
    if kinds.is_floating(of) or kinds.is_decimal(of):
        return {"type": "number"}
    if kinds.is_string(of) or kinds.is_large_string(of):
        return {"type": "string"}
    if kinds.is_binary(of) or kinds.is_large_binary(of):
        return {"type": "string", "contentEncoding": "base64"}
    if kinds.is_date(of):
        return {"type": "string", "format": "date"}
    if kinds.is_timestamp(of):
        return {"type": "string", "format": "date-time"}
    if kinds.is_map(of):
        return {"type": "object", "additionalProperties": _item(of.item_field)}
    if kinds.is_list(of) or kinds.is_large_list(of):
        return {"type": "array", "items": _item(of.value_field)}
    if not kinds.is_struct(of):
        raise UnsupportedSchema(f"JSON has no type for {of}")
    made: dict[str, Any] = {"type": "object", "properties": {field.name: _schema(field.type) for field in of}}
    required = [field.name for field in of if not field.nullable]
    return {**made, "required": required} if required else made


def _item(field: pa.Field) -> dict[str, Any]:
    schema = _schema(field.type)
    return {"oneOf": [{"type": "null"}, schema]} if field.nullable else schema


def encoder(schema: Source) -> JsonEncoder:
    """See `JsonEncoder`."""
    return JsonEncoder(schema)
