"""The nodes of an Avro schema.

Nodes are distinguished by identity, never by value: a type may contain itself, and reader and writer are compared pair
by pair. Only the parser that creates a node changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.schemas.jackson import Json

PRIMITIVES = ("string", "bytes", "int", "long", "float", "double", "boolean", "null")
COMPLEX = ("record", "enum", "array", "map", "union", "fixed")


class AvroName(NamedTuple):
    """The name of a record, enum or fixed; `space` is None for types without a namespace."""

    simple: str
    space: str | None

    @property
    def full(self) -> str:
        return self.simple if self.space is None else f"{self.space}.{self.simple}"

    def seen_from(self, space: str | None) -> str:
        """Return its spelling inside a namespace: short if that is the same, unless it would be taken for a built-in
        type.
        """
        short = self.space is not None and self.space == space and self.simple not in (*PRIMITIVES, *COMPLEX)
        return self.simple if short else self.full


@dataclass(slots=True, eq=False)
class Primitive:
    type: str
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: AvroType
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Map:
    values: AvroType
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Union:
    branches: list[AvroType]
    where: str


@dataclass(slots=True, eq=False)
class Fixed:
    name: AvroName
    doc: str | None
    size: int
    aliases: tuple[AvroName, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Enum:
    name: AvroName
    doc: str | None
    symbols: tuple[str, ...]
    default: str | None
    aliases: tuple[AvroName, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class AvroField:
    name: str
    type: AvroType
    doc: str | None
    has_default: bool
    default: Json
    order: str
    aliases: tuple[str, ...]
    props: dict[str, Json]
    where: str


@dataclass(slots=True, eq=False)
class AvroRecord:
    name: AvroName
    doc: str | None
    error: bool
    fields: tuple[AvroField, ...] = ()
    aliases: tuple[AvroName, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)
    by_name: dict[str, AvroField] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class UnresolvedName:
    """A name whose type is defined later, or around it. The parser replaces all of them."""

    full: str
    where: str


Named = AvroRecord | Enum | Fixed
AvroType = Primitive | Array | Map | Union | AvroRecord | Enum | Fixed | UnresolvedName
_KINDS: dict[type, str] = {
    Array: "array",
    Map: "map",
    Union: "union",
    AvroRecord: "record",
    Enum: "enum",
    Fixed: "fixed",
    UnresolvedName: "later",
}


def kind(schema: AvroType) -> str:
    """Return the type's name in Avro: string, record, union, …"""
    if isinstance(schema, Primitive):
        return schema.type
    return _KINDS[type(schema)]


def full_name(schema: AvroType) -> str:
    """Return the name that must be unique in a union: the full name of a named type, the type of any other."""
    return schema.name.full if isinstance(schema, Named) else kind(schema)


def alias_names(schema: Named) -> list[str]:
    """Return the full names by which writers may have called the type; a leading dot marks one in
    the null namespace.
    """
    return [
        f".{alias.simple}" if alias.space is None and schema.name.space is not None else alias.full
        for alias in schema.aliases
    ]
