"""Arrow types of JSON Schema: objects are structs, and what has no one type is kept as JSON text.

Rules:
- All fields are nullable: what `required` says is not checked, and absent is null.
- An object without properties is a map if its additional properties have a schema, else text.
- `format` date-time and date are times, `contentEncoding` base64 is bytes.
- Only types count: other keywords (limits, patterns) are for validators.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ottla.columns.codec import UnsupportedSchema
from ottla.model.limits import COLUMNS_MAX
from ottla.schemas.schema import InvalidSchema, Source

# Marks fields that hold JSON text of anything.
ANY = {b"ottla.json": b"any"}

_PLAIN = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(), "null": pa.null()}
_FORMATS = {"date-time": pa.timestamp("us", tz="UTC"), "date": pa.date32()}


def field_of(source: Source) -> pa.Field:
    """The type of a schema's values, as a field (whose metadata says ANY for text of anything)."""
    try:
        document = json.loads(source.text)
        others = {name: json.loads(text) for name, text in source.resolved.items()}
    except ValueError as error:
        raise InvalidSchema(f"this is not a JSON schema: {error}") from error
    except RecursionError as error:
        raise UnsupportedSchema("the schema is nested too deeply for columns") from error
    return _Types(others).field("value", document, document)


class _Types:
    def __init__(self, others: Mapping[str, Any]) -> None:
        self._others = others
        self._open: list[int] = []
        self._count = 0

    def field(self, name: str, schema: Any, document: Any) -> pa.Field:
        """A schema as a field; `document` is what its references are looked up in."""
        self._count += 1
        if self._count > COLUMNS_MAX:
            raise UnsupportedSchema(f"the schema has more than {COLUMNS_MAX} columns")
        if isinstance(schema, Mapping) and "$ref" in schema:
            schema, document = self._referenced(schema["$ref"], document)
        if not isinstance(schema, Mapping):
            return pa.field(name, pa.string(), metadata=ANY)
        if id(schema) in self._open:
            raise UnsupportedSchema(f"{name} is inside itself: recursive types have no columns")
        self._open.append(id(schema))
        try:
            made = self._type(schema, document)
        finally:
            self._open.pop()
        return made.with_name(name)

    def _type(self, schema: Mapping[str, Any], document: Any) -> pa.Field:
        if "allOf" in schema:
            schema = self._all_of(schema, document)
        for choice in ("oneOf", "anyOf"):
            if choice in schema:
                some = [each for each in schema[choice] if each != {"type": "null"}]
                return self.field("", some[0], document) if len(some) == 1 else _any()
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else list(kinds or ())
        some = [kind for kind in kinds if kind != "null"] or kinds
        kind = some[0] if len(some) == 1 else None
        if set(some) == {"integer", "number"}:
            kind = "number"
        if kind is None and "properties" in schema and not kinds:
            kind = "object"
        if kind is None and not kinds and _are_texts(schema.get("enum", [schema.get("const")])):
            kind = "string"
        if kind == "object":
            return self._object(schema, document)
        if kind == "array":
            items = schema.get("items")
            item = self.field("element", items, document) if isinstance(items, Mapping) else _any("element")
            return pa.field("", pa.list_(item))
        if kind == "string":
            if schema.get("contentEncoding") == "base64":
                return pa.field("", pa.binary())
            return pa.field("", _FORMATS.get(schema.get("format", ""), pa.string()))
        return pa.field("", _PLAIN[kind]) if kind in _PLAIN else _any()

    def _object(self, schema: Mapping[str, Any], document: Any) -> pa.Field:
        properties = schema.get("properties")
        if properties:
            return pa.field("", pa.struct([self.field(name, each, document) for name, each in properties.items()]))
        more = schema.get("additionalProperties")
        if isinstance(more, Mapping):
            return pa.field("", pa.map_(pa.string(), self.field("value", more, document)))
        return _any()

    def _all_of(self, schema: Mapping[str, Any], document: Any) -> Mapping[str, Any]:
        """One schema for all: what they say of types and properties."""
        merged: dict[str, Any] = {key: each for key, each in schema.items() if key != "allOf"}
        properties = dict(merged.get("properties", {}))
        for part in schema["allOf"]:
            if isinstance(part, Mapping) and "$ref" in part:
                part, _ = self._referenced(part["$ref"], document)
            if isinstance(part, Mapping):
                properties = {**part.get("properties", {}), **properties}
                merged = {**part, **merged}
        return {**merged, "properties": properties} if properties else merged

    def _referenced(self, reference: str, document: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        found = document if not name else self._others.get(name)
        if found is None:
            raise UnsupportedSchema(f"the schema {name!r} that is referred to is not among the references")
        document = found
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
            if found is None:
                raise InvalidSchema(f"{reference!r} refers to nothing")
        return found, document


def _any(name: str = "") -> pa.Field:
    return pa.field(name, pa.string(), metadata=ANY)


def _are_texts(values: Any) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def is_any(field: pa.Field) -> bool:
    """Whether a field holds JSON text of anything."""
    return bool(field.metadata) and field.metadata.get(b"ottla.json") == b"any"


def plain(field: pa.Field) -> pa.Field:
    """Without our marks."""
    of = field.type
    if pa.types.is_struct(of):
        of = pa.struct([plain(each) for each in of])
    elif pa.types.is_list(of):
        of = pa.list_(plain(of.value_field))
    elif pa.types.is_map(of):
        of = pa.map_(of.key_field, plain(of.item_field))
    return pa.field(field.name, of, field.nullable)
