"""Whether a default value fits its field's type, by the rules of Java's Avro."""

from __future__ import annotations

from ottla.schemas.avro.types import Array, AvroField, AvroRecord, AvroType, Enum, Fixed, Map, Primitive, Union
from ottla.schemas.jackson import Json

Memo = dict[tuple[int, int], bool]
"""Pairs that were checked already: without it, defaults of nested records would be checked again and again."""


def fits(schema: AvroType, value: Json, memo: Memo) -> bool:
    key = (id(schema), id(value))
    known = memo.get(key)
    if known is None:
        memo[key] = False  # if it occurs again inside itself, the default would contain itself
        known = memo[key] = _fits(schema, value, memo)
    return known


def _fits(schema: AvroType, value: Json, memo: Memo) -> bool:
    if isinstance(schema, Primitive):
        return _primitive_fits(schema.type, value)
    if isinstance(schema, Enum | Fixed):
        return isinstance(value, str)
    if isinstance(schema, Array):
        return isinstance(value, list) and all(fits(schema.items, item, memo) for item in value)
    if isinstance(schema, Map):
        return isinstance(value, dict) and all(fits(schema.values, item, memo) for item in value.values())
    if isinstance(schema, Union):
        return any(fits(branch, value, memo) for branch in schema.branches)
    return isinstance(schema, AvroRecord) and isinstance(value, dict) and _record_fits(schema.fields, value, memo)


def _record_fits(fields: tuple[AvroField, ...], value: dict[str, Json], memo: Memo) -> bool:
    for field in fields:
        if field.name in value:
            if not fits(field.type, value[field.name], memo):
                return False
        elif not (field.has_default and fits(field.type, field.default, memo)):
            return False
    return True


def _primitive_fits(type_name: str, value: Json) -> bool:
    if type_name in ("string", "bytes"):
        return isinstance(value, str)
    if type_name == "null":
        return value is None
    if isinstance(value, bool):
        return type_name == "boolean"
    if type_name == "int":
        return isinstance(value, int) and -(1 << 31) <= value < 1 << 31
    if type_name == "long":
        return isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    return type_name in ("float", "double") and isinstance(value, int | float)
