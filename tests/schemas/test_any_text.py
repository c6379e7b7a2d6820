"""Whatever somebody registers is a schema or is refused: nothing else happens, to no reader of it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.schemas.parse import parse
from ottla.schemas.schema import InvalidSchema, Parsed, SchemaSource, SchemaType

AVRO_WORDS = [
    "type",
    "name",
    "namespace",
    "fields",
    "items",
    "values",
    "symbols",
    "size",
    "default",
    "aliases",
    "doc",
    "order",
    "record",
    "enum",
    "array",
    "map",
    "fixed",
    "error",
    "null",
    "int",
    "string",
    "double",
    "R",
    "S",
    "logicalType",
    "decimal",
    "precision",
    "scale",
]
JSON_WORDS = [
    "type",
    "properties",
    "items",
    "required",
    "enum",
    "const",
    "not",
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
    "$id",
    "$schema",
    "$defs",
    "definitions",
    "additionalProperties",
    "additionalItems",
    "prefixItems",
    "patternProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "minimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "pattern",
    "if",
    "default",
    "title",
    "#",
    "#/definitions/a",
    "#/$defs/a",
    "object",
    "array",
    "string",
    "integer",
    "null",
    "a",
    "$anchor",
    "$dynamicRef",
    "http://json-schema.org/draft-04/schema#",
    "https://json-schema.org/draft/2020-12/schema",
]


def trees(words: list[str]) -> st.SearchStrategy[Any]:
    word = st.sampled_from(words)
    return st.recursive(
        word | st.integers(-2, 3) | st.floats(allow_nan=False) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=5),
        max_leaves=12,
    )


def parsed(tree: Any, kind: SchemaType, resolved: Any) -> Parsed | None:
    try:
        return parse(SchemaSource(json.dumps(tree), kind, resolved={"a": json.dumps(resolved)}))
    except InvalidSchema:
        return None


@pytest.mark.parametrize(("kind", "words"), [(SchemaType.AVRO, AVRO_WORDS), (SchemaType.JSON, JSON_WORDS)])
def test_any_json_is_a_schema_or_is_refused(kind: SchemaType, words: list[str]) -> None:
    @settings(max_examples=400, deadline=None)
    @given(trees(words), trees(words))
    def look(one: Any, other: Any) -> None:
        mine, its = parsed(one, kind, {}), parsed(other, kind, one)
        if mine is not None:
            assert parsed(json.loads(mine.canonical), kind, {}) is not None
            assert mine.normalized
        if mine is not None and its is not None:
            for found in (*mine.incompatibilities(its), *its.incompatibilities(mine)):
                assert found.message
            assert [each for each in mine.incompatibilities(mine) if each.kind] == []

    look()


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_any_text_is_a_schema_or_is_refused(kind: SchemaType) -> None:
    @settings(deadline=None)
    @given(st.text())
    def look(text: str) -> None:
        with contextlib.suppress(InvalidSchema):
            parse(SchemaSource(text, kind))

    look()
