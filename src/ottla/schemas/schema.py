"""What the registry and its users know of a schema of any type.

A `SchemaSource` is what somebody registered: text, type, and the references it names with the texts they resolve to. A
`Parsed` is what one of the types (`schemas.avro`, `schemas.json`, `schemas.protobuf`) makes of it; `schemas.parse`
finds the right one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol


class SchemaType(StrEnum):
    """The types, as Confluent's API spells them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Reference(NamedTuple):
    """A schema that another one uses: under `name` (a type's full name, a URI, an import path) it is that version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """A schema as text. `resolved` holds the texts of all references, those of references too, dependencies first."""

    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    resolved: Mapping[str, str] = field(default_factory=dict)


class Incompatibility(NamedTuple):
    """Why a reader cannot read what a writer wrote: Confluent's name for the kind, where, and a sentence."""

    kind: str
    path: str
    message: str


class InvalidSchema(ValueError):
    """The text is not a schema of its type; the message says what and where."""


class UnsupportedSchema(ValueError):
    """The schema is valid, but has no columns: recursive types, decimals beyond 38 digits."""


class Parsed(Protocol):
    """A schema that was understood."""

    @property
    def canonical(self) -> str:
        """The text that the registry stores and gives out (Confluent's canonical string: no reordering)."""
        ...

    @property
    def normalized(self) -> str:
        """The same for all spellings of one schema: what `normalize=true` stores and compares."""
        ...

    def incompatibilities(self, writer: Parsed) -> Sequence[Incompatibility]:
        """Why this schema, as the reader, cannot read what `writer` wrote; empty when it can."""
        ...
