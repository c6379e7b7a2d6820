"""A Protobuf schema for columns: a message whose fields are the columns, numbered in their order."""

from __future__ import annotations

import re

import pyarrow as pa

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.names import is_variant, sql_name
from ottla.schemas.schema import SchemaSource, SchemaType

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {
    pa.bool_(): "bool",
    pa.int8(): "int32",
    pa.int16(): "int32",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.decimal128(20, 0): "uint64",
}
_KEYS = ("bool", "int32", "int64", "string", "uint64")


def derive_protobuf(of: pa.DataType, name: str) -> SchemaSource:
    """Return the schema to register for columns of a type. Raises UnsupportedSchema for types without an equivalent."""
    if not pa.types.is_struct(of):
        raise UnsupportedSchema(f"a Protobuf message has fields; {of} has none")
    body = _message(of, name)
    imports = [kind for kind in ("duration", "timestamp") if f"google.protobuf.{kind.title()} " in body]
    lines = ['syntax = "proto3";', *(f'import "google/protobuf/{each}.proto";' for each in imports), body]
    return SchemaSource("\n".join(lines) + "\n", SchemaType.PROTOBUF)


def _message(of: pa.DataType, name: str) -> str:
    nested: list[str] = []
    lines: list[str] = []
    for number, field in enumerate(of, 1):
        if not _NAME.fullmatch(field.name):
            raise UnsupportedSchema(f"{field.name!r} is no name of a Protobuf field: letters, digits and _ only")
        lines.append(f"{_declared(field, nested)} {field.name} = {number};")
    return f"message {name} {{\n" + "\n".join([*nested, *lines]) + "\n}"


def _declared(field: pa.Field, nested: list[str]) -> str:
    of, kinds = field.type, pa.types
    if kinds.is_map(of):
        key = _one(of.key_type, field.name, nested)
        if key not in _KEYS:
            raise UnsupportedSchema(f"{field.name}: {sql_name(of.key_type)} cannot be the key of a Protobuf map")
        return f"map<{key}, {_one(of.item_type, field.name, nested)}>"
    if kinds.is_list(of) or kinds.is_large_list(of):
        return f"repeated {_one(of.value_type, field.name, nested)}"
    one = _one(of, field.name, nested)
    return f"optional {one}" if field.nullable and of in _PLAIN else one


def _one(of: pa.DataType, name: str, nested: list[str]) -> str:
    if of in _PLAIN:
        return _PLAIN[of]
    if pa.types.is_timestamp(of) and of.tz is None:
        raise UnsupportedSchema(f"{name}: Protobuf has no type for {sql_name(of)}; cast it to TIMESTAMP")
    if pa.types.is_timestamp(of):
        return "google.protobuf.Timestamp"
    if pa.types.is_duration(of):
        return "google.protobuf.Duration"
    if pa.types.is_struct(of) and not is_variant(of):
        inner = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Message"
        nested.append(_message(of, inner))
        return inner
    raise UnsupportedSchema(f"{name}: Protobuf has no type for {sql_name(of)}")
