"""The contents of a JSON schema, ordered by keyword: the form in which two schemas are compared.

One JSON object becomes one node. If its keywords concern several types, or combine schemas beside other keywords, the
node is an `allOf` of one node for each. Nodes are distinguished by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from ottla.schemas.jackson import Json

Amount = int | Decimal


@dataclass(slots=True, eq=False, kw_only=True)
class JsonNode:
    """Attributes of any schema; `mark` is its fingerprint, once it is complete."""

    mark: str = ""
    id: str | None = None
    title: str | None = None
    description: str | None = None
    has_default: bool = False
    default: Json = None
    connect_type: Json = None


@dataclass(slots=True, eq=False, kw_only=True)
class Anything(JsonNode):
    """A schema without constraints: `{}`."""


@dataclass(slots=True, eq=False, kw_only=True)
class Always(Anything):
    """`true`."""


@dataclass(slots=True, eq=False, kw_only=True)
class Never(JsonNode):
    """`false`."""


@dataclass(slots=True, eq=False, kw_only=True)
class ReferenceNode(JsonNode):
    """A `$ref`. `target` is set once the whole schema has been read."""

    pointer: str
    target: JsonNode | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class BooleanNode(JsonNode):
    """A schema of booleans."""


@dataclass(slots=True, eq=False, kw_only=True)
class NullNode(JsonNode):
    """A schema of the value null."""


@dataclass(slots=True, eq=False, kw_only=True)
class TextNode(JsonNode):
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class NumberNode(JsonNode):
    integer: bool = False
    minimum: Amount | None = None
    maximum: Amount | None = None
    exclusive_minimum: Amount | None = None
    exclusive_maximum: Amount | None = None
    multiple_of: Amount | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class ObjectNode(JsonNode):
    """A schema of objects. `open` is false if no other properties are allowed; `others` is the schema of those."""

    properties: dict[str, JsonNode] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    patterns: dict[str, JsonNode] = field(default_factory=dict)
    open: bool = True
    others: JsonNode | None = None
    unevaluated: JsonNode | None = None
    needed_with: dict[str, frozenset[str]] = field(default_factory=dict)
    schema_with: dict[str, JsonNode] = field(default_factory=dict)
    min_properties: int | None = None
    max_properties: int | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class ArrayNode(JsonNode):
    """A schema of arrays: `each` for all items, or `items` by position and `others` for those after them."""

    each: JsonNode | None = None
    items: list[JsonNode] = field(default_factory=list)
    open: bool = True
    others: JsonNode | None = None
    unevaluated: JsonNode | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique: bool = False
    min_contains: Amount | None = None
    max_contains: Amount | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class EnumNode(JsonNode):
    """`enum`: the allowed values as sorted JSON text."""

    values: frozenset[str]


@dataclass(slots=True, eq=False, kw_only=True)
class Constant(JsonNode):
    value: str


@dataclass(slots=True, eq=False, kw_only=True)
class Not(JsonNode):
    node: JsonNode


@dataclass(slots=True, eq=False, kw_only=True)
class Conditional(JsonNode):
    """`if`, `then`, `else`: only their presence is noted; they are never compared (as in Confluent's registry)."""


@dataclass(slots=True, eq=False, kw_only=True)
class Combined(JsonNode):
    """A combination; `criterion` is allOf, anyOf or oneOf."""

    criterion: str
    parts: list[JsonNode]
