"""What changed between two JSON schemas, and whether that does harm: tables, and a validator's second opinion."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schemas.json.diff.cases import ANY_SCHEMA, ARRAYS, COMBINED, LIMITS, MODERN, OBJECTS, VALUES, Case, Json

from ottla.model import limits
from ottla.schemas.json import JsonSchema, parse_json
from ottla.schemas.json.diff.describe import DESCRIPTIONS
from ottla.schemas.json.diff.kinds import COMPATIBLE
from ottla.schemas.json.diff.matching import most_pairs
from ottla.schemas.json.diff.order import hash_order, map_order
from ottla.schemas.json.diff.schemas import differences
from ottla.schemas.schema import SchemaSource, SchemaType

OLD_DRAFTS = [f"http://json-schema.org/draft-0{number}/schema#" for number in (6, 7)]
NEW_DRAFTS = [f"https://json-schema.org/draft/{name}/schema" for name in ("2019-09", "2020-12")]


def parsed(tree: Json, draft: str | None = None) -> JsonSchema:
    if draft is not None and isinstance(tree, dict):
        tree = {"$schema": draft, **tree}
    return parse_json(SchemaSource(json.dumps(tree), SchemaType.JSON))


def found(original: Json, update: Json, draft: str | None = None) -> list[str]:
    return [
        f"{each.kind} {each.path}" for each in differences(parsed(original, draft).node, parsed(update, draft).node)
    ]


@pytest.mark.parametrize(
    "case", [*ANY_SCHEMA, *LIMITS, *VALUES, *OBJECTS, *ARRAYS, *COMBINED], ids=lambda case: json.dumps(case[:2])
)
def test_differences(case: Case) -> None:
    original, update, expected = case
    assert found(original, update) == expected
    assert found(original, update, OLD_DRAFTS[0]) == expected or "if" in original


@pytest.mark.parametrize("case", MODERN, ids=lambda case: json.dumps(case[:2]))
def test_differences_of_new_drafts(case: Case) -> None:
    original, update, expected = case
    assert found(original, update, NEW_DRAFTS[1]) == expected


@pytest.mark.parametrize("draft", NEW_DRAFTS)
@pytest.mark.parametrize("case", [*LIMITS, *VALUES, *COMBINED], ids=lambda case: json.dumps(case[:2]))
def test_most_is_the_same_in_new_drafts(case: Case, draft: str) -> None:
    original, update, expected = case
    assert found(original, update, draft) == expected


def test_old_drafts_know_less() -> None:
    draft_4 = "http://json-schema.org/draft-04/schema#"
    flags = {"type": "number", "maximum": 5, "exclusiveMaximum": True}, {"type": "number", "maximum": 5}
    assert found(*flags, draft_4) == []
    assert found({"const": 1}, {"const": 2}, draft_4) == []
    assert found({"id": "a"}, {"id": "b"}, draft_4) == ["ID_CHANGED #/"]


def test_a_reader_is_told_only_what_does_harm_in_confluent_s_words() -> None:
    old = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer", "title": "x"}}}
    new = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["b"]}
    assert parsed(new).incompatibilities(parsed(old)) == [
        (
            "REQUIRED_ATTRIBUTE_ADDED",
            "#/required/b",
            '{errorType:"REQUIRED_ATTRIBUTE_ADDED", description:"The keyword at path \'#/required/b\' in the %s schema'
            " is not present in the %s schema'}",
        ),
        (
            "TYPE_CHANGED",
            "#/properties/a",
            '{errorType:"TYPE_CHANGED", description:"A type at path \'#/properties/a\' is different between the %s'
            " schema and the %s schema'}",
        ),
    ]


def test_everything_that_does_harm_has_a_description() -> None:
    cases = [*ANY_SCHEMA, *LIMITS, *VALUES, *OBJECTS, *ARRAYS, *COMBINED, *MODERN]
    seen = {each.split()[0] for _, _, expected in cases for each in expected}
    assert seen - COMPATIBLE - DESCRIPTIONS.keys() == {"SCHEMA_ADDED"}  # Confluent has none either
    assert not (DESCRIPTIONS.keys() - {"SUM_TYPE_EXTENDED"}) & COMPATIBLE


# --- schemas that contain themselves --------------------------------------------------------------------------------


def tree(value: Json, reference: str = "#") -> Json:
    return {"type": "object", "properties": {"value": value, "next": {"$ref": reference}}}


def test_a_schema_may_contain_itself() -> None:
    assert found(tree({"type": "integer"}), tree({"type": "integer"})) == []
    assert found(tree({"type": "string"}), tree({"type": "integer"})) == [
        "TYPE_CHANGED #/properties/next/properties/next/properties/value",
        "TYPE_CHANGED #/properties/next/properties/value",
        "TYPE_CHANGED #/properties/value",
    ]


def union_of(kinds: dict[str, tuple[str, str]]) -> Json:
    """Objects with an id of a type and a `ref` to another; the root is one of the first two."""

    def only(name: str) -> Json:
        return {"oneOf": [{"$ref": f"#/definitions/{name}"}]}

    return {
        "definitions": {
            name: {"type": "object", "properties": {"id": {"type": kind}, "ref": only(other)}}
            for name, (kind, other) in kinds.items()
        },
        "type": "object",
        "properties": {"root": {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in list(kinds)[:2]]}},
    }


def test_what_was_assumed_of_a_cycle_is_checked_in_the_end() -> None:
    """A pair that is taken for compatible while it is looked at must not make others so for good."""
    old = union_of({"A": ("integer", "C"), "B": ("boolean", "C"), "C": ("integer", "A")})
    new = union_of({"A": ("boolean", "C"), "B": ("number", "C"), "C": ("integer", "A")})
    assert parsed(new).incompatibilities(parsed(old))
    assert not parsed(new).incompatibilities(parsed(new))


def test_many_definitions_that_use_each_other_are_compared_in_no_time() -> None:
    names = [f"T{number}" for number in range(12)]
    union = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in names]}
    old = {
        "definitions": {
            name: {"type": "object", "properties": {"id": {"type": "string"}, "a": union, "b": union}} for name in names
        },
        **union,
    }
    new = json.loads(json.dumps(old))
    assert not parsed(new).incompatibilities(parsed(old))
    new["definitions"]["T0"]["properties"]["id"]["type"] = "number"
    assert parsed(new).incompatibilities(parsed(old))


def test_what_is_found_does_not_double_with_each_level_and_harm_is_never_lost() -> None:
    def doubled(innermost: Json) -> Json:
        levels = {"L0": innermost}
        for level in range(1, 30):
            link = {"$ref": f"#/definitions/L{level - 1}"}
            levels[f"L{level}"] = {"type": "object", "properties": {"a": link, "b": link}}
        return {"definitions": levels, "$ref": "#/definitions/L29"}

    harmless = found(doubled({"type": "integer"}), doubled({"type": "number"}))
    assert len(harmless) == limits.SCHEMA_DIFFERENCES_MAX
    harm = parsed(doubled({"type": "string"})).incompatibilities(parsed(doubled({"type": "number"})))
    assert 0 < len(harm) <= limits.SCHEMA_DIFFERENCES_MAX


def test_a_long_chain_of_definitions_is_no_deep_recursion() -> None:
    def chain(innermost: Json) -> Json:
        links = {f"L{level}": {"items": {"$ref": f"#/definitions/L{level + 1}"}} for level in range(3_000)}
        return {"definitions": {**links, "L3000": innermost}, "$ref": "#/definitions/L0"}

    assert found(chain({"type": "integer"}), chain({"type": "integer"})) == []
    assert found(chain({"type": "integer"}), chain({"type": "null"})) == [f"TYPE_CHANGED #/{'items/' * 2_999}items"]


def test_schemas_that_are_too_large_are_not_compared_and_not_let_through() -> None:
    wide = {"anyOf": [{"type": "string", "minLength": size} for size in range(300)]}
    other = {"anyOf": [{"type": "string", "minLength": size} for size in range(300, 600)]}
    (complaint,) = parsed(wide).incompatibilities(parsed(other))
    assert "too large" in complaint.message


# --- small things ---------------------------------------------------------------------------------------------------


def test_names_come_in_the_order_of_java_s_hash_sets() -> None:
    """As Java prints `new HashSet<>(List.of("b", "a"))` with the others added; "Aa" and "BB" have the same hash."""
    named = hash_order(["b", "a"], ["c", "BB", "Aa", "value", "next"])
    assert named == ["BB", "Aa", "next", "a", "b", "c", "value"]
    assert hash_order([], []) == []
    assert map_order(["value", "next", "a"]) == ["next", "a", "value"]


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 6), unique=True), max_size=7))
def test_as_many_pairs_as_possible(edges: dict[int, list[int]]) -> None:
    pairs = most_pairs(edges)
    assert len(set(pairs.values())) == len(pairs)
    assert all(right in edges[left] for left, right in pairs.items())

    def best(left: list[int], taken: frozenset[int]) -> int:
        if not left:
            return 0
        tries = [1 + best(left[1:], taken | {right}) for right in edges[left[0]] if right not in taken]
        return max([best(left[1:], taken), *tries])

    assert len(pairs) == best(list(edges), frozenset())


# --- a validator's opinion ------------------------------------------------------------------------------------------

# Not drawn, because Confluent's rules are known to let harm through there: oneOf, patterns, contains, conditions,
# defaults, and `required` of properties that are not described.
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1},
        {"type": "string", "maxLength": 2},
        {"type": "integer"},
        {"type": "number"},
        {"type": "number", "minimum": 1},
        {"type": "integer", "maximum": 2, "multipleOf": 2},
        {"type": "integer", "multipleOf": 4},
        {"type": ["string", "null"]},
        {"enum": ["a", 1, None]},
        {"enum": ["a", 1]},
        {"const": 1},
        {"type": "boolean"},
        False,
    ]
)


def objects(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    def made(properties: dict[str, Json], required: bool, others: Json, most: int | None) -> Json:
        schema: dict[str, Json] = {"type": "object", "properties": properties}
        if required:
            schema["required"] = sorted(properties)[:1]
        if others is not True:
            schema["additionalProperties"] = others
        return schema if most is None else {**schema, "maxProperties": most}

    names = st.dictionaries(st.sampled_from("abc"), inner, max_size=2)
    return st.builds(made, names, st.booleans(), st.just(True) | st.just(False) | inner, st.sampled_from([None, 1, 2]))


def arrays(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    every = st.builds(lambda items: {"type": "array", "items": items}, inner)
    tuples = st.builds(
        lambda items, others: {"type": "array", "items": items, "additionalItems": others},
        st.lists(inner, max_size=2),
        st.just(True) | st.just(False) | inner,
    )
    return every | tuples


def combined(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    parts = st.lists(inner, min_size=1, max_size=3)
    return st.builds(lambda word, several: {word: several}, st.sampled_from(["anyOf", "allOf"]), parts) | st.builds(
        lambda one: {"not": one}, inner
    )


SCHEMAS = st.recursive(LEAVES, lambda inner: objects(inner) | arrays(inner) | combined(inner), max_leaves=4)
VALUES_DRAWN: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 4, 1.5, "", "a", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, SCHEMAS, st.lists(VALUES_DRAWN, min_size=5, max_size=10))
def test_what_was_valid_stays_valid_when_no_harm_is_seen(old: Json, new: Json, values: list[Any]) -> None:
    if parsed(new).incompatibilities(parsed(old)):
        return
    before, after = jsonschema.Draft7Validator(old), jsonschema.Draft7Validator(new)
    assert [value for value in values if before.is_valid(value) and not after.is_valid(value)] == []


@settings(deadline=None)
@given(SCHEMAS)
def test_nothing_harms_itself(schema: Json) -> None:
    assert not parsed(schema).incompatibilities(parsed(schema))
