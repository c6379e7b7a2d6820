"""Whether two definitions of a type are equal in names, structure, defaults and properties; docs and aliases are
ignored.
"""

from __future__ import annotations

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
)


def equal(one: AvroType, other: AvroType, seen: set[tuple[int, int]] | None = None) -> bool:
    seen = set() if seen is None else seen
    key = (id(one), id(other))
    if one is other or key in seen:
        return True
    seen.add(key)
    if isinstance(one, UnresolvedName) or isinstance(other, UnresolvedName):
        return _name_used(one) == _name_used(other)
    if isinstance(one, Union):
        return (
            isinstance(other, Union)
            and len(one.branches) == len(other.branches)
            and all(equal(mine, its, seen) for mine, its in zip(one.branches, other.branches, strict=True))
        )
    if isinstance(other, Union) or one.props != other.props:
        return False
    if isinstance(one, Primitive):
        return isinstance(other, Primitive) and one.type == other.type
    if isinstance(one, Array):
        return isinstance(other, Array) and equal(one.items, other.items, seen)
    if isinstance(one, Map):
        return isinstance(other, Map) and equal(one.values, other.values, seen)
    if isinstance(one, Fixed):
        return isinstance(other, Fixed) and (one.name, one.size) == (other.name, other.size)
    if isinstance(one, Enum):
        return isinstance(other, Enum) and (one.name, one.symbols) == (other.name, other.symbols)
    return (
        isinstance(other, AvroRecord)
        and one.name == other.name
        and len(one.fields) == len(other.fields)
        and all(_same_field(mine, its, seen) for mine, its in zip(one.fields, other.fields, strict=True))
    )


def _same_field(one: AvroField, other: AvroField, seen: set[tuple[int, int]]) -> bool:
    return (one.name, one.has_default, one.default, one.order, one.props) == (
        other.name,
        other.has_default,
        other.default,
        other.order,
        other.props,
    ) and equal(one.type, other.type, seen)


def _name_used(schema: AvroType) -> str | None:
    if isinstance(schema, UnresolvedName):
        return schema.full
    return schema.name.full if isinstance(schema, AvroRecord | Enum | Fixed) else None
