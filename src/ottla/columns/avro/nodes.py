"""Avro schemas as trees: names resolved, logical types recognised. The registry has validated the schema.

Rules:
- A named type that contains itself has no columns: `UnsupportedSchema`.
- A logical type that does not fit its type is ignored, as the specification says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.columns.codec import UnsupportedSchema
from ottla.model.limits import COLUMNS_MAX
from ottla.schemas.schema import InvalidSchema, SchemaSource

# The property by which Spark marks which of its own types a number is.
SPARK_TYPE = "spark.sql.catalyst.type"
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(frozen=True, slots=True)
class AvroNodeField:
    """A field of a record. `default` is JSON; `has_default` distinguishes the default null from no default."""

    name: str
    node: AvroNode
    aliases: tuple[str, ...] = ()
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class AvroNode:
    """A type: `kind` as the specification names it. The kind determines which other attributes are used."""

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    default: str | None = None
    fields: tuple[AvroNodeField, ...] = ()
    branches: tuple[AvroNode, ...] = ()
    items: AvroNode | None = field(default=None)

    @property
    def item(self) -> AvroNode:
        """The type of an array's items or a map's values."""
        assert self.items is not None
        return self.items

    @property
    def short_name(self) -> str:
        """The name without the namespace."""
        return self.name.rpartition(".")[2]


def parse_nodes(source: SchemaSource) -> AvroNode:
    """Return the tree of a schema. Raises InvalidSchema, UnsupportedSchema."""
    names: dict[str, Any] = {}
    try:
        for text in source.resolved.values():
            _Parser(names).declare(json.loads(text), "")
        return _Parser(names).node(json.loads(source.text), "")
    except RecursionError as error:
        raise UnsupportedSchema("the schema is nested too deeply for columns") from error
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InvalidSchema(f"this is not an Avro schema: {error!r}") from error


class _Parser:
    def __init__(self, declared: dict[str, Any]) -> None:
        self._declared = declared
        self._open: list[str] = []
        self._count = 0

    def declare(self, schema: Any, namespace: str) -> None:
        """Collect the named types in a schema, with the namespace in which each was found."""
        if isinstance(schema, list):
            for branch in schema:
                self.declare(branch, namespace)
        elif isinstance(schema, Mapping):
            kind = schema["type"]
            if kind in ("record", "error", "enum", "fixed"):
                name = full_name(schema, namespace)
                self._declared.setdefault(name, (schema, namespace))
                for each in schema.get("fields", ()):
                    self.declare(each["type"], name.rpartition(".")[0])
            elif kind in ("array", "map"):
                self.declare(schema["items" if kind == "array" else "values"], namespace)
            elif not isinstance(kind, str):
                self.declare(kind, namespace)

    def node(self, schema: Any, namespace: str) -> AvroNode:
        self._count += 1
        if self._count > COLUMNS_MAX:
            raise UnsupportedSchema(f"the schema has more than {COLUMNS_MAX} columns")
        if isinstance(schema, list):
            return AvroNode("union", branches=tuple(self.node(branch, namespace) for branch in schema))
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return AvroNode(schema)
            return self._named(schema, namespace)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.node(kind, namespace)
        if kind in PRIMITIVES:
            return _logical(AvroNode(kind), schema)
        if kind == "array":
            return AvroNode("array", items=self.node(schema["items"], namespace))
        if kind == "map":
            return AvroNode("map", items=self.node(schema["values"], namespace))
        if kind in ("record", "error", "enum", "fixed"):
            self.declare(schema, namespace)
            return self._declaration(schema, namespace)
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroNode:
        found = None
        if "." not in name and namespace:
            found = self._declared.get(f"{namespace}.{name}")
        found = found or self._declared.get(name)
        if found is None:
            raise InvalidSchema(f"the type {name!r} is not defined")
        return self._declaration(*found)

    def _declaration(self, schema: Mapping[str, Any], namespace: str) -> AvroNode:
        name = full_name(schema, namespace)
        space = name.rpartition(".")[0]
        if name in self._open:
            raise UnsupportedSchema(f"{name} is inside itself: recursive types have no columns")
        self._open.append(name)
        try:
            aliases = tuple(_in_space(alias, space) for alias in schema.get("aliases", ()))
            if schema["type"] == "enum":
                return AvroNode("enum", name, aliases, symbols=tuple(schema["symbols"]), default=schema.get("default"))
            if schema["type"] == "fixed":
                return _logical(AvroNode("fixed", name, aliases, size=schema["size"]), schema)
            fields = tuple(self._field(each, space) for each in schema["fields"])
            return AvroNode("record", name, aliases, fields=fields)
        finally:
            self._open.pop()

    def _field(self, schema: Mapping[str, Any], namespace: str) -> AvroNodeField:
        # A logical type beside the type (not inside it) is a common mistake, and is ignored.
        return AvroNodeField(
            schema["name"],
            self.node(schema["type"], namespace),
            tuple(schema.get("aliases", ())),
            schema.get("default"),
            "default" in schema,
        )


def full_name(schema: Mapping[str, Any], namespace: str) -> str:
    """Return the full name of a declaration inside a namespace."""
    name: str = schema["name"]
    if "." in name:
        return name
    return _in_space(name, schema.get("namespace", namespace) or "")


def _in_space(name: str, namespace: str) -> str:
    if "." in name:
        return name.removeprefix(".")  # an alias in the null namespace
    return f"{namespace}.{name}" if namespace else name


_LOGICAL = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "big-decimal": "bytes",
}
_INTERVAL = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")


def _logical(node: AvroNode, schema: Mapping[str, Any]) -> AvroNode:
    logical = schema.get("logicalType")
    if isinstance(logical, str) and node.kind == _LOGICAL.get(logical):
        return AvroNode(node.kind, logical=logical)
    if node.kind == "long" and _INTERVAL.fullmatch(str(schema.get(SPARK_TYPE)).lower()):
        return AvroNode(node.kind, logical="interval")
    if logical != "decimal" or node.kind not in ("bytes", "fixed"):
        return node
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
        return node
    if node.kind == "fixed" and 10**precision > 2 ** (8 * node.size - 1):
        return node
    return AvroNode(node.kind, node.name, node.aliases, "decimal", precision, scale, node.size)
