"""Shapes of JSON schemas: what a reader's columns are made of; and whatever is registered is a shape or a refusal."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.schemas.json.shapes import JsonShape, ShapeKind, shape_of
from ottla.schemas.readable import reader_of
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType, UnsupportedSchema


def shape(schema: Any, **others: Any) -> JsonShape:
    resolved = {name: json.dumps(each) for name, each in others.items()}
    return shape_of(SchemaSource(json.dumps(schema), SchemaType.JSON, (), resolved))


def kinds(of: JsonShape) -> Any:
    if of.kind is ShapeKind.STRUCT:
        return {name: kinds(each) for name, each in of.fields}
    return [of.kind.name, kinds(of.item)] if of.items is not None else of.kind.name


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, "ANY"),
        ({}, "ANY"),
        ({"type": "integer"}, "LONG"),
        ({"type": ["null", "integer"]}, "LONG"),
        ({"type": ["integer", "number"]}, "DOUBLE"),
        ({"type": ["integer", "string"]}, "ANY"),
        ({"type": "null"}, "NOTHING"),
        ({"enum": ["a", "b"]}, "STRING"),
        ({"const": "a"}, "STRING"),
        ({"enum": ["a", 1]}, "ANY"),
        ({"type": "object"}, "ANY"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, ["MAP", "BOOLEAN"]),
        ({"properties": {"a": {"type": "string", "format": "date"}}}, {"a": "DAY"}),
        ({"type": "array"}, ["LIST", "ANY"]),
        ({"type": "array", "items": [{"type": "integer"}]}, ["LIST", "ANY"]),
        ({"oneOf": [{"type": "null"}, {"type": "number"}]}, "DOUBLE"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "ANY"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"}}}, "LONG"),
        ({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "integer"}}}, "LONG"),
        ({"$ref": "#here", "$defs": {"a": {"$id": "#here", "type": "boolean"}}}, "BOOLEAN"),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}, "b": {}}}, {"properties": {"a": {"type": "integer"}}}]},
            {"a": "STRING", "b": "ANY"},
        ),
    ],
)
def test_what_a_schema_is(schema: Any, expected: Any) -> None:
    assert kinds(shape(schema)) == expected


def test_references_are_followed_in_their_own_documents() -> None:
    other = {"definitions": {"x": {"$ref": "#/definitions/y"}, "y": {"type": "boolean"}}, "type": "object",
             "properties": {"deep": {"$ref": "#/definitions/x"}}}  # fmt: skip
    schema = {
        "properties": {"a": {"$ref": "other.json#/definitions/x"}, "b": {"$ref": "other.json"}},
        "definitions": {"x": {"type": "integer"}},
    }
    assert kinds(shape(schema, **{"other.json": other})) == {"a": "BOOLEAN", "b": {"deep": "BOOLEAN"}}
    merged = {"allOf": [{"$ref": "other.json"}, {"properties": {"own": {"$ref": "#/definitions/x"}}}],
              "definitions": {"x": {"type": "integer"}}}  # fmt: skip
    assert kinds(shape(merged, **{"other.json": other})) == {"own": "LONG", "deep": "BOOLEAN"}


def test_what_writers_have_to_know() -> None:
    made = shape({"properties": {"a": {"type": "integer"}, "b": {"type": ["null", "string"]}}, "required": ["a"]})
    assert made.required == ("a",) and [each.nullable for _, each in made.fields] == [False, True]
    assert shape({"oneOf": [{"type": "null"}, {"type": "string"}]}).nullable
    parts = {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}
    assert sorted(shape(parts).required) == ["a", "b"]


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"$ref": "#"}, UnsupportedSchema),
        ({"properties": {"a": {"items": {"$ref": "#"}, "type": "array"}}}, UnsupportedSchema),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, UnsupportedSchema),
        ({"$ref": "#/nothing"}, InvalidSchema),
        ({"$ref": "http://nowhere/x"}, InvalidSchema),
        ({"$ref": 5}, InvalidSchema),
        ({"properties": [1]}, InvalidSchema),
        ({"oneOf": 5}, InvalidSchema),
        ({"type": [{}, []]}, InvalidSchema),
        ({"allOf": {"a": 1}, "type": "object"}, None),
        ({"properties": {f"f{n}": {} for n in range(5000)}}, UnsupportedSchema),
    ],
)
def test_what_has_no_shape(schema: Any, error: type[Exception] | None) -> None:
    if error is None:
        shape(schema)
        return
    with pytest.raises(error):
        shape(schema)


KEYWORDS = [
    "type", "properties", "items", "required", "oneOf", "anyOf", "allOf", "$ref", "$id", "$defs", "definitions", "enum",
    "const", "format", "contentEncoding", "additionalProperties", "patternProperties", "$schema", "$anchor", "pattern",
    "minimum", "uniqueItems", "not", "if",
]  # fmt: skip
WORDS = [
    "object",
    "array",
    "integer",
    "number",
    "string",
    "null",
    "#",
    "#/$defs/a",
    "date-time",
    "base64",
    "a",
    "http://x",
]
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(WORDS),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from([*KEYWORDS, "a"]), below, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(KEYWORDS), anything, max_size=5), st.sampled_from([b"{}", b"1", b'{"a":[1]}']))
def test_whatever_is_registered_is_a_shape_or_a_refusal(schema: Any, payload: bytes) -> None:
    source = SchemaSource(json.dumps(schema), SchemaType.JSON)
    with suppress(InvalidSchema, UnsupportedSchema):
        shape_of(source)
    with suppress(InvalidSchema):
        assert reader_of(source)(payload, None) != ""
