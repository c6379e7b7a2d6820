"""Logical types: which of them Java's Avro recognises on a type; it ignores those that do not fit."""

from __future__ import annotations

import math

from ottla.schemas.avro.types import Array, AvroRecord, Enum, Fixed, Map, Primitive, kind

_LONG = ("time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos")
_UNDERLYING = {
    "date": "int",
    "time-millis": "int",
    "big-decimal": "bytes",
    **dict.fromkeys((*_LONG, *(f"local-{name}" for name in _LONG[1:])), "long"),
}
_UUID_BYTES = 16
_DURATION_BYTES = 12


def logical_props(schema: Primitive | Array | Map | Enum | Fixed | AvroRecord) -> list[str]:
    """Return the keys that make up the logical type, in the order of the normal form; empty if there is none."""
    name = schema.props.get("logicalType")
    if not isinstance(name, str):
        return []
    if name == "decimal":
        return _decimal(schema)
    if name == "uuid":
        fits = kind(schema) == "string" or (isinstance(schema, Fixed) and schema.size == _UUID_BYTES)
    elif name == "duration":
        fits = isinstance(schema, Fixed) and schema.size == _DURATION_BYTES
    else:
        fits = _UNDERLYING.get(name) == kind(schema)
    return ["logicalType"] if fits else []


def _decimal(schema: Primitive | Array | Map | Enum | Fixed | AvroRecord) -> list[str]:
    precision, scale = schema.props.get("precision"), schema.props.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or bool in (type(precision), type(scale)):
        return []
    if not (kind(schema) in ("bytes", "fixed") and precision > 0 and 0 <= scale <= precision):
        return []
    if isinstance(schema, Fixed) and precision > math.floor(math.log10(2) * (8 * schema.size - 1)):
        return []
    return ["logicalType", "precision", "scale"] if scale else ["logicalType", "precision"]
