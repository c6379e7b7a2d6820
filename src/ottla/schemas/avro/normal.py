"""The normal form of an Avro schema, as Confluent's registry normalises it: the same JSON for all its spellings.

Aliases and properties are sorted, those of a logical type first; empty docs of types are dropped, defaults are spelt in
the type of their field, names are full, an error is a record. Parsing the result and writing it gives the normal text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ottla.schemas.avro.logical import logical_props
from ottla.schemas.avro.types import (
    Array,
    AvroField,
    AvroRecord,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Union,
    UnresolvedName,
    alias_names,
)
from ottla.schemas.jackson import Json, in_order, java_order


def normal(schema: AvroType, known: Iterable[str]) -> Json:
    """Return the normal form; `known` are the full names of types that are defined elsewhere."""
    return _tree(schema, set(known))


def _tree(schema: AvroType, known: set[str]) -> Json:
    if isinstance(schema, Union):
        return [_tree(branch, known) for branch in schema.branches]
    if isinstance(schema, Primitive):
        return {"type": schema.type} | _props(schema) if schema.props else schema.type
    if isinstance(schema, Array):
        return {"type": "array", "items": _tree(schema.items, known)} | _props(schema)
    if isinstance(schema, Map):
        return {"type": "map", "values": _tree(schema.values, known)} | _props(schema)
    assert not isinstance(schema, UnresolvedName)
    full = schema.name.full
    if full in known:
        return full
    known.add(full)
    tree: dict[str, Json] = {"name": full, "type": "record"}
    if isinstance(schema, Enum):
        tree |= {"type": "enum", "symbols": list(schema.symbols)}
        if schema.default is not None:
            tree["default"] = schema.default
    elif isinstance(schema, Fixed):
        tree |= {"type": "fixed", "size": schema.size}
    else:
        tree["fields"] = [_field(field, known) for field in schema.fields]
    if schema.doc:
        tree["doc"] = schema.doc
    if schema.aliases:
        tree["aliases"] = sorted(dict.fromkeys(alias_names(schema)), key=java_order)
    return tree | _props(schema)


def _field(field: AvroField, known: set[str]) -> Json:
    tree: dict[str, Json] = {"name": field.name, "type": _tree(field.type, known), "order": field.order}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.aliases:
        tree["aliases"] = sorted(field.aliases, key=java_order)
    if field.has_default:
        found, value = _default(field.type, field.default)
        if found:
            tree["default"] = in_order(value)
    return tree | in_order(field.props)


def _props(schema: Primitive | Array | Map | Enum | Fixed | AvroRecord) -> dict[str, Json]:
    props: dict[str, Json] = in_order(schema.props)
    return {key: props[key] for key in logical_props(schema)} | props


def _default(schema: AvroType, value: Json) -> tuple[bool, Json]:
    """Return whether the default fits its type, and the value in the spelling of that type."""
    if value is None:
        return True, None
    if isinstance(schema, Union):
        for branch in schema.branches:
            if not (isinstance(branch, Primitive) and branch.type == "null"):
                found, made = _default(branch, value)
                if found:
                    return True, made
        return False, None
    if isinstance(value, list):
        if not isinstance(schema, Array):
            return False, None
        return True, [_default(schema.items, item)[1] for item in value]
    if isinstance(value, dict):
        return True, {key: _default_in(schema, key, item) for key, item in value.items()}
    if isinstance(value, bool):
        return True, value
    if isinstance(value, str):
        return isinstance(schema, Enum | Fixed) or _is(schema, "string", "bytes"), value
    if isinstance(value, int):
        if _is(schema, "float", "double"):
            return True, _fraction(schema, float(value))
        return _is(schema, "int", "long"), value
    return _is(schema, "float", "double"), _fraction(schema, value)


def _default_in(schema: AvroType, key: str, value: Json) -> Json:
    if isinstance(schema, Map):
        return _default(schema.values, value)[1]
    if isinstance(schema, AvroRecord) and key in schema.by_name:
        return _default(schema.by_name[key].type, value)[1]
    return value


def _is(schema: AvroType, *types: str) -> bool:
    return isinstance(schema, Primitive) and schema.type in types


def _fraction(schema: AvroType, value: float) -> float:
    """Round a float's value to 32 bits."""
    if not _is(schema, "float"):
        return value
    try:
        (narrow,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return _shortest(narrow)


def _shortest(narrow: float) -> float:
    """Return the shortest decimal that is this 32-bit float, as Java prints it."""
    for digits in range(1, 10):
        candidate = float(f"{narrow:.{digits}g}")
        if struct.pack("<f", candidate) == struct.pack("<f", narrow):
            return candidate
    return narrow
