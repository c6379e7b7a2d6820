"""The common interface of schemas of any type.

A `SchemaSource` is a schema as it is registered: text, type, and its references with the texts they resolve to. A
`Parsed` is the result of parsing it by one of the types (`schemas.avro`, `schemas.json`, `schemas.protobuf`);
`schemas.parse` chooses the right one.
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
    """A schema that another one uses: `name` (a type's full name, a URI, an import path) stands for that version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """A schema as text. `resolved` has the texts of all references, indirect ones too, dependencies first."""

    text: str
    type: SchemaType = SchemaType.AVRO
    references: tuple[Reference, ...] = ()
    resolved: Mapping[str, str] = field(default_factory=dict)


class Incompatibility(NamedTuple):
    """Why a reader cannot read payloads of a writer: Confluent's name for the kind, the place, and a sentence."""

    kind: str
    path: str
    message: str


class InvalidSchema(ValueError):
    """The text is not a schema of its type; the message says what is wrong and where."""


class UnsupportedSchema(ValueError):
    """The schema is valid, but has no columns: recursive types, decimals beyond 38 digits."""


class Parsed(Protocol):
    """A parsed schema."""

    @property
    def canonical(self) -> str:
        """The text that the registry stores and returns (Confluent's canonical string: no reordering)."""
        ...

    @property
    def normalized(self) -> str:
        """The text that is the same for all spellings of one schema: `normalize=true` stores and compares it."""
        ...

    def incompatibilities(self, writer: Parsed) -> Sequence[Incompatibility]:
        """Return why this schema, as the reader, cannot read payloads of `writer`; empty if it can."""
        ...
