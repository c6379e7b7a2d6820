"""The elements of a .proto file as written: made by the parser, printed by the printer, interpreted by other modules.

Rules:
- Names of types stay as they were spelt (`linking` resolves them); options stay uninterpreted (`options` does that).
- Order within a kind is the order of the text. Where kinds interleave (a nested message between two map fields), the
  positions give the order; comparisons ignore them, so that a file equals the same file in another layout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class TextPosition(NamedTuple):
    """Line and column, both from 1."""

    line: int = 0
    column: int = 0


NOWHERE = TextPosition()


class LiteralKind(Enum):
    """The kind of a literal in an option."""

    STRING = "string"
    NUMBER = "number"
    WORD = "word"  # true, false, inf, nan, the name of an enum value


@dataclass(frozen=True, slots=True)
class Literal:
    """A single value: `text` for numbers (with the sign) and words, `data` for strings (escapes decoded)."""

    kind: LiteralKind
    text: str = ""
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A message in braces. A key is a field's name, or an extension's (or a URL with a type) in brackets."""

    entries: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """A list in brackets."""

    values: tuple[Value, ...] = ()


Value = Literal | Aggregate | ListLiteral


class NamePart(NamedTuple):
    """One part of an option's name: `(a.b)` names an extension, `a` a field."""

    name: str
    is_extension: bool


@dataclass(frozen=True, slots=True)
class ProtoOption:
    name: tuple[NamePart, ...]
    value: Value
    position: TextPosition = field(default=NOWHERE, compare=False)

    def is_plain(self, name: str) -> bool:
        return self.name == (NamePart(name, False),)


class NumberRange(NamedTuple):
    """A number, or with `last` a range that includes both ends."""

    first: int
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Reserved:
    """One `reserved` statement: numbers and names that may not be used."""

    values: tuple[NumberRange | str, ...]


@dataclass(frozen=True, slots=True)
class Extensions:
    """One `extensions` statement: numbers that other files may use."""

    spans: tuple[NumberRange, ...]
    options: tuple[ProtoOption, ...] = ()


class Label(Enum):
    OPTIONAL = "optional"
    REQUIRED = "required"
    REPEATED = "repeated"


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field. `key` is the type of a map's keys (then `type` is that of its values); `group` is a group's body."""

    name: str
    type: str
    number: int
    label: Label | None = None
    key: str | None = None
    group: Message | None = None
    oneof: str | None = None
    options: tuple[ProtoOption, ...] = ()
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ProtoOneOf:
    name: str
    options: tuple[ProtoOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Extend:
    extendee: str
    fields: tuple[ProtoField, ...]
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EnumValue:
    name: str
    number: int
    options: tuple[ProtoOption, ...] = ()
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EnumType:
    name: str
    values: tuple[EnumValue, ...] = ()
    options: tuple[ProtoOption, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `fields` includes the members of oneofs, at their places; `nested` does not include groups."""

    name: str
    fields: tuple[ProtoField, ...] = ()
    oneofs: tuple[ProtoOneOf, ...] = ()
    nested: tuple[Message, ...] = ()
    enums: tuple[EnumType, ...] = ()
    extends: tuple[Extend, ...] = ()
    extensions: tuple[Extensions, ...] = ()
    reserved: tuple[Reserved, ...] = ()
    options: tuple[ProtoOption, ...] = ()
    position: TextPosition = field(default=NOWHERE, compare=False)

    @property
    def is_map_entry(self) -> bool:
        """Whether this is the message of a map's entries, which descriptors have in place of a map."""
        return self.claims_map_entry and [each.name for each in self.fields] == ["key", "value"]

    @property
    def claims_map_entry(self) -> bool:
        return any(option.is_plain("map_entry") and option.value == TRUE for option in self.options)


TRUE = Literal(LiteralKind.WORD, "true")


@dataclass(frozen=True, slots=True)
class Rpc:
    """A method. `has_body`: it has braces, even if empty (protoc then makes empty options)."""

    name: str
    request: str
    response: str
    is_request_stream: bool = False
    is_response_stream: bool = False
    options: tuple[ProtoOption, ...] = ()
    has_body: bool = field(default=False, compare=False)
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ProtoService:
    name: str
    rpcs: tuple[Rpc, ...] = ()
    options: tuple[ProtoOption, ...] = ()
    position: TextPosition = field(default=NOWHERE, compare=False)


class ImportKind(Enum):
    PLAIN = ""
    PUBLIC = "public"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Import:
    path: str
    kind: ImportKind = ImportKind.PLAIN
    position: TextPosition = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """A whole file. `syntax` is None if the text has none (which means proto2)."""

    syntax: str | None = None
    package: str | None = None
    imports: tuple[Import, ...] = ()
    options: tuple[ProtoOption, ...] = ()
    messages: tuple[Message, ...] = ()
    enums: tuple[EnumType, ...] = ()
    extends: tuple[Extend, ...] = ()
    services: tuple[ProtoService, ...] = ()

    @property
    def is_proto3(self) -> bool:
        return self.syntax == "proto3"
