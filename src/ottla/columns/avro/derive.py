"""An Avro schema for columns: the mapping of Spark's `to_avro`, so that its readers can read the payloads.

Two differences: a nullable field is `["null", T]` with the default null (Spark writes `[T, "null"]` without a default,
which makes it impossible to add one compatibly), and decimals are bytes (a fixed needs a name of its own).
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from ottla.columns.avro.nodes import SPARK_TYPE
from ottla.columns.codec import UnsupportedSchema
from ottla.columns.names import is_variant, sql_name
from ottla.schemas.schema import SchemaSource, SchemaType

_PLAIN = {
    pa.null(): "null",
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def derive_avro(of: pa.DataType, name: str = "topLevelRecord", namespace: str = "") -> SchemaSource:
    """Return the schema to register for columns of a type. Raises UnsupportedSchema for types without an Avro
    equivalent.
    """
    return SchemaSource(json.dumps(_schema(of, name, namespace)), SchemaType.AVRO)


def _schema(of: pa.DataType, name: str, namespace: str) -> Any:
    if of in _PLAIN:
        return _PLAIN[of]
    kinds = pa.types
    if kinds.is_date32(of):
        return {"type": "int", "logicalType": "date"}
    if kinds.is_timestamp(of):
        local = "local-" if of.tz is None else ""
        return {"type": "long", "logicalType": f"{local}timestamp-micros"}
    if kinds.is_time64(of):
        return {"type": "long", "logicalType": "time-micros", SPARK_TYPE: "time(6)"}
    if kinds.is_duration(of):
        return {"type": "long", SPARK_TYPE: "interval day to second"}
    if kinds.is_decimal(of):
        return {"type": "bytes", "logicalType": "decimal", "precision": of.precision, "scale": of.scale}
    if kinds.is_map(of):
        if not kinds.is_string(of.key_type):
            raise UnsupportedSchema(f"{name}: keys of Avro maps are strings, not {sql_name(of.key_type)}")
        return {"type": "map", "values": _field_schema(of.item_field, name, namespace)}
    if kinds.is_list(of) or kinds.is_large_list(of):
        return {"type": "array", "items": _field_schema(of.value_field, name, namespace)}
    if not kinds.is_struct(of) or is_variant(of):
        raise UnsupportedSchema(f"{name}: Avro has no type for {sql_name(of)}")
    within = f"{namespace}.{name}" if namespace else name
    made: dict[str, Any] = {"type": "record", "name": name}
    if namespace:
        made["namespace"] = namespace
    made["fields"] = [_field(field, within) for field in of]
    return made


def _field(field: pa.Field, within: str) -> dict[str, Any]:
    if not _NAME.fullmatch(field.name):
        raise UnsupportedSchema(f"{field.name!r} is no name of an Avro field: letters, digits and _ only")
    made = {"name": field.name, "type": _field_schema(field, field.name, within)}
    return {**made, "default": None} if field.nullable else made


def _field_schema(field: pa.Field, name: str, namespace: str) -> Any:
    schema = _schema(field.type, name, namespace)
    return ["null", schema] if field.nullable and schema != "null" else schema
