"""What an Avro schema is made of.

Nodes are told apart by identity, never by value: a type may contain itself, and reader and writer are compared pair by
pair. A node is only changed by the parser that makes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.schemas.jackson import Json

PRIMITIVES = ("string", "bytes", "int", "long", "float", "double", "boolean", "null")
COMPLEX = ("record", "enum", "array", "map", "union", "fixed")


class Name(NamedTuple):
    """The name of a record, enum or fixed; `space` is None for types without a namespace."""

    simple: str
    space: str | None

    @property
    def full(self) -> str:
        return self.simple if self.space is None else f"{self.space}.{self.simple}"

    def seen_from(self, space: str | None) -> str:
        """How it is spelt inside a namespace: short where that is the same, and not taken for a built-in type."""
        short = self.space is not None and self.space == space and self.simple not in (*PRIMITIVES, *COMPLEX)
        return self.simple if short else self.full


@dataclass(slots=True, eq=False)
class Primitive:
    type: str
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: Schema
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Map:
    values: Schema
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Union:
    branches: list[Schema]
    where: str


@dataclass(slots=True, eq=False)
class Fixed:
    name: Name
    doc: str | None
    size: int
    aliases: tuple[Name, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Enum:
    name: Name
    doc: str | None
    symbols: tuple[str, ...]
    default: str | None
    aliases: tuple[Name, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Schema
    doc: str | None
    has_default: bool
    default: Json
    order: str
    aliases: tuple[str, ...]
    props: dict[str, Json]
    where: str


@dataclass(slots=True, eq=False)
class Record:
    name: Name
    doc: str | None
    error: bool
    fields: tuple[Field, ...] = ()
    aliases: tuple[Name, ...] = ()
    props: dict[str, Json] = field(default_factory=dict)
    by_name: dict[str, Field] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Later:
    """A name whose type is defined further on, or around it. The parser leaves none behind."""

    full: str
    where: str


Named = Record | Enum | Fixed
Schema = Primitive | Array | Map | Union | Record | Enum | Fixed | Later


def kind(schema: Schema) -> str:
    """The type's name in Avro: string, record, union, …"""
    if isinstance(schema, Primitive):
        return schema.type
    return type(schema).__name__.lower()


def full_name(schema: Schema) -> str:
    """What must be unique in a union: the full name of a named type, the type of any other."""
    return schema.name.full if isinstance(schema, Named) else kind(schema)


def alias_names(schema: Named) -> list[str]:
    """Full names by which writers may have called the type; a leading dot marks one that left the type's namespace."""
    return [
        f".{alias.simple}" if alias.space is None and schema.name.space is not None else alias.full
        for alias in schema.aliases
    ]
