"""Avro types → the text that the registry returns: compact, attributes in the order of Java's Avro.

A type is written out at its first use and named from then on; types that belong to references are only named.
Namespaces are left out if the enclosing one is the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.schemas.avro.types import (
    Array,
    AvroField,
    AvroName,
    AvroRecord,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Primitive,
    Union,
    UnresolvedName,
)
from ottla.schemas.jackson import Json, write


def to_text(schema: AvroType, known: Iterable[str] = ()) -> str:
    """Return the text; `known` are the full names of types that are defined elsewhere."""
    return write(_tree(schema, None, set(known)))


def _tree(schema: AvroType, space: str | None, known: set[str]) -> Json:
    if isinstance(schema, Primitive):
        return {"type": schema.type, **schema.props} if schema.props else schema.type
    if isinstance(schema, Array):
        return {"type": "array", "items": _tree(schema.items, space, known), **schema.props}
    if isinstance(schema, Map):
        return {"type": "map", "values": _tree(schema.values, space, known), **schema.props}
    if isinstance(schema, Union):
        return [_tree(branch, space, known) for branch in schema.branches]
    assert not isinstance(schema, UnresolvedName)
    if schema.name.full in known:
        return schema.name.seen_from(space)
    known.add(schema.name.full)
    return _definition(schema, space, known)


def _definition(schema: Named, space: str | None, known: set[str]) -> Json:
    kind = "enum" if isinstance(schema, Enum) else "fixed" if isinstance(schema, Fixed) else "record"
    tree: dict[str, Json] = {"type": "error" if isinstance(schema, AvroRecord) and schema.error else kind}
    tree |= _name(schema.name, space)
    if schema.doc is not None:
        tree["doc"] = schema.doc
    if isinstance(schema, Enum):
        tree["symbols"] = list(schema.symbols)
        if schema.default is not None:
            tree["default"] = schema.default
    elif isinstance(schema, Fixed):
        tree["size"] = schema.size
    else:
        tree["fields"] = [_field(field, schema.name.space, known) for field in schema.fields]
    tree |= schema.props
    if schema.aliases:
        tree["aliases"] = list(dict.fromkeys(alias.seen_from(schema.name.space) for alias in schema.aliases))
    return tree


def _name(name: AvroName, space: str | None) -> dict[str, Json]:
    if name.space == space:
        return {"name": name.simple}
    return {"name": name.simple, "namespace": name.space or ""}


def _field(field: AvroField, space: str | None, known: set[str]) -> Json:
    tree: dict[str, Json] = {"name": field.name, "type": _tree(field.type, space, known)}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.has_default:
        tree["default"] = field.default
    if field.order != "ascending":
        tree["order"] = field.order
    if field.aliases:
        tree["aliases"] = list(field.aliases)
    return tree | field.props
