"""Schemas and payloads whose check would take hours with Python's regular expressions, or with none that count work:
each gets an answer soon, and those that ask for little are answered as `jsonschema` answers.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ottla.model import limits
from ottla.schemas.parse import parse
from ottla.schemas.readable import PayloadCheck, reader_of
from ottla.schemas.schema import SchemaSource, SchemaType

DRAFT = "https://json-schema.org/draft/"
NEW, OLDER = f"{DRAFT}2020-12/schema", f"{DRAFT}2019-09/schema"
# As many states at once as there are characters, and no two places of the text have the same.
DEAR = "[a-z]{1,1000}[0-9]{1,1000}z"
TOO_MUCH = "more work than its size is worth"
CPU_S_MAX = 10.0


def source(schema: Any) -> SchemaSource:
    return SchemaSource(json.dumps(schema), SchemaType.JSON)


def check_of(schema: Any) -> PayloadCheck:
    return reader_of(source(schema))


def refused(check: PayloadCheck, value: Any) -> str | None:
    return check(json.dumps(value).encode(), None)


BACKTRACKING = [
    {"pattern": "^(a+)+$"},
    {"propertyNames": {"pattern": "^(a|a)*$"}},
    {"patternProperties": {"^(a+)+$": False}, "additionalProperties": False},
    {"$schema": NEW, "patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
    {"$schema": OLDER, "patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
    {
        "$schema": NEW,
        "allOf": [{"$ref": "#/$defs/x"}],
        "$defs": {"x": {"patternProperties": {"^(a?){60}a{60}b$": True}}},
        "unevaluatedProperties": False,
    },
]


@pytest.mark.parametrize("schema", BACKTRACKING)
def test_no_expression_goes_back(schema: dict[str, Any]) -> None:
    """A backtracking engine would take 2^60 steps, and let no other thread run meanwhile."""
    name = "a" * 60 + "!"
    assert refused(check_of(schema), name if "pattern" in schema else {name: 1}) is not None


def test_each_payload_pays_for_its_expressions() -> None:
    check, begun_s = check_of({"pattern": DEAR}), time.thread_time()
    for number in range(200):
        assert TOO_MUCH in str(refused(check, "a" * (600 + number)))
    assert time.thread_time() - begun_s < CPU_S_MAX


@pytest.mark.parametrize("regex", [DEAR, "(a{100}){100}"])
def test_many_expressions_are_no_more_than_one(regex: str) -> None:
    begun_s = time.thread_time()
    properties = {f"({regex})|{number}": True for number in range(1_000)}
    check = check_of({"patternProperties": properties, "additionalProperties": False})
    for _ in range(5):
        assert TOO_MUCH in str(refused(check, {"a" * 700: 1}))
    assert time.thread_time() - begun_s < CPU_S_MAX


def test_an_expression_that_is_too_large_is_made_once() -> None:
    check, begun_s = check_of({"pattern": "(a{1000}){1000}"}), time.thread_time()
    for _ in range(1_000):
        assert "expression too large" in str(refused(check, "a"))
    assert time.thread_time() - begun_s < CPU_S_MAX


def test_what_is_usual_is_never_too_much() -> None:
    """Texts with ever new characters, for which no step of the expression is known yet, however many there were."""
    check, rng = check_of({"pattern": "^.{1,200}$"}), random.Random(1)
    for _ in range(2_500):
        text = "".join(chr(0x4E00 + rng.randrange(20_000)) for _ in range(150))
        assert refused(check, text) is None


def test_what_is_left_over_is_found_in_little_time() -> None:
    """Names and items that no keyword applies to were looked for in lists; and nobody counted dependent schemas."""
    begun_s = time.thread_time()
    names = {f"n{number}": 1 for number in range(50_000)}
    assert "not allowed" in str(refused(check_of({"$schema": NEW, "unevaluatedProperties": False}), names))
    contained = {"$schema": NEW, "contains": True, "unevaluatedItems": False}
    assert refused(check_of(contained), [1] * 50_000) is None
    parts: dict[str, Any] = {
        f"d{n}": {"dependentSchemas": {each: {"$ref": f"#/$defs/d{n + 1}"} for each in "ab"}} for n in range(40)
    }
    parts["d40"] = True
    doubling = {"$schema": NEW, "unevaluatedProperties": False, "$ref": "#/$defs/d0", "$defs": parts}
    assert TOO_MUCH in str(refused(check_of(doubling), {"a": 1, "b": 1}))
    assert time.thread_time() - begun_s < CPU_S_MAX


@pytest.mark.parametrize("is_update", [True, False])
def test_a_comparison_pays_for_its_expressions(is_update: bool) -> None:
    patterns = parse(source({"patternProperties": {f"{DEAR}{number}": {"type": "string"} for number in range(50)}}))
    names = {"a" * 600 + str(number): {"type": "string"} for number in range(100)}
    named = parse(source({"properties": names, "additionalProperties": False}))
    begun_s = time.thread_time()
    found = patterns.incompatibilities(named) if is_update else named.incompatibilities(patterns)
    assert any("too large to be compared" in each.message for each in found)
    assert time.thread_time() - begun_s < CPU_S_MAX


def test_a_comparison_of_usual_size_is_no_trouble() -> None:
    before = {f"^x{number}-[a-z]{{1,20}}$": {"type": "string"} for number in range(50)}
    after = {f"x{number}-note": {"type": "string"} for number in range(50)}
    old = parse(source({"patternProperties": before, "additionalProperties": False}))
    new = parse(source({"patternProperties": before, "properties": after, "additionalProperties": False}))
    assert new.incompatibilities(old) == []
    assert limits.SCHEMA_PATTERN_WORK_MAX > 1_000_000


REST = {"unevaluatedProperties": {"type": "null"}, "unevaluatedItems": {"type": "null"}}
A, IS_ONE = {"properties": {"a": True}}, {"properties": {"a": {"const": 1}}, "required": ["a"]}
FIRST: dict[str, Any] = {"prefixItems": [True]}
# What a schema says beside REST; a value that holds, and one that does not.
APPLIED: list[tuple[dict[str, Any], Any, Any]] = [
    ({}, {"a": None}, {"a": 1}),
    (A, {"a": 1, "b": None}, {"a": 1, "b": 1}),
    ({"patternProperties": {"^a": True}}, {"ab": 1}, {"ba": 1}),
    ({"additionalProperties": True}, {"b": 1}, 0),
    ({"unevaluatedProperties": False}, {}, {"a": None}),
    ({"allOf": [A, {"unevaluatedProperties": {"type": "integer"}}]}, {"a": 1, "b": 1}, {"a": 1, "b": "x"}),
    ({"allOf": [A]}, {"a": 1}, {"b": 1}),
    ({"anyOf": [IS_ONE, {"required": ["b"]}]}, {"a": 1}, {"a": 2, "b": None}),
    ({"oneOf": [A, False]}, {"a": 1}, {"b": 1}),
    ({"not": {"not": A}}, {"a": None}, {"a": 1}),
    ({"if": IS_ONE}, {"a": 1}, {"a": 2}),
    ({"if": IS_ONE, "then": {"properties": {"b": True}}}, {"a": 1, "b": 1}, {"a": 2, "b": 1}),
    ({"if": {"required": ["z"]}, "else": A}, {"a": 1}, {"a": 1, "z": None}),
    ({"dependentSchemas": {"d": A}}, {"a": 1, "d": None}, {"a": 1}),
    ({"$ref": "#/$defs/it", "$defs": {"it": {"allOf": [A]}}}, {"a": 1}, {"b": 1}),
    ({"$ref": "#/$defs/it", "$defs": {"it": {"$ref": "#/$defs/a"}, "a": A}}, {"a": 1}, {"b": 1}),
    ({"$dynamicRef": "#it", "$defs": {"it": {"$dynamicAnchor": "it", **A}}}, {"a": 1}, {"b": 1}),
    (FIRST, [1, None], [1, 1]),
    ({"items": True}, [1, 1], 0),
    ({**FIRST, "items": {"type": "integer"}}, [1, 1], [1, "x"]),
    ({"contains": {"type": "integer"}}, [1, None], [1, "x"]),
    ({"allOf": [FIRST, {"contains": {"const": 7}}]}, [1, 7], [7, 1]),
    ({"anyOf": [{"unevaluatedItems": {"type": "integer"}}]}, [1], ["x"]),
    ({"$schema": OLDER, "items": [True]}, [1, None], [1, 1]),
    ({"$schema": OLDER, "items": True}, [1, 1], 0),
    ({"$schema": OLDER, "items": [True], "additionalItems": True}, [1, 1], 0),
    ({"$schema": OLDER, "prefixItems": [True]}, [None], [1]),
]


@pytest.mark.parametrize(("schema", "holds", "fails"), APPLIED, ids=lambda each: json.dumps(each)[:60])
def test_what_no_other_keyword_applies_to(schema: dict[str, Any], holds: Any, fails: Any) -> None:
    """Where nothing fails there is a 0."""
    whole = {"$schema": NEW, **REST, **schema}
    check = check_of(whole)
    assert refused(check, holds) is None
    if fails != 0:
        assert "are not allowed" in str(refused(check, fails)) or "is not of type" in str(refused(check, fails))
    if fails != 0:  # `jsonschema` itself knows no items of draft 2019-09 that are true
        validator = jsonschema.validators.validator_for(whole)(whole)
        assert validator.is_valid(holds) and not validator.is_valid(fails)


def test_older_schemas_do_not_know_these_keywords() -> None:
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", "unevaluatedProperties": False}
    assert refused(check_of(draft_7), {"a": 1}) is None
    assert refused(check_of({"unevaluatedItems": False}), [1]) is None


_NAMES = st.sampled_from(["a", "b", "ab", "x"])
_VALUES = st.sampled_from([1, "s", None])
_PLAIN = st.sampled_from([True, False, {"type": "integer"}, {"type": "string"}, {}])


def _with_keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of some keywords each, so that few of them apply to everything."""
    several = st.lists(inner, min_size=1, max_size=2)
    keywords = {
        "properties": st.dictionaries(_NAMES, _PLAIN, min_size=1, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "x"]), _PLAIN, min_size=1, max_size=2),
        "additionalProperties": _PLAIN,
        "unevaluatedProperties": _PLAIN,
        "prefixItems": st.lists(_PLAIN, min_size=1, max_size=2),
        "items": _PLAIN,
        "contains": _PLAIN,
        "unevaluatedItems": _PLAIN,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "if": inner,
        "then": inner,
        "else": inner,
        "dependentSchemas": st.dictionaries(_NAMES, inner, min_size=1, max_size=2),
        "$ref": st.sampled_from(["#/$defs/one", "#/$defs/two"]),
    }
    each = st.one_of(*(st.tuples(st.just(name), values) for name, values in keywords.items()))
    return st.lists(each, max_size=3).map(dict)


_SCHEMAS = st.recursive(_PLAIN, _with_keywords, max_leaves=6)
_TOPS = _with_keywords(_SCHEMAS)


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(_TOPS, _PLAIN, _SCHEMAS, st.dictionaries(_NAMES, _VALUES, max_size=4) | st.lists(_VALUES, max_size=4))
def test_the_verdict_is_that_of_jsonschema(top: dict[str, Any], one: Any, two: Any, value: Any) -> None:
    rest = {"unevaluatedProperties": False, "unevaluatedItems": False}
    schema = {"$schema": NEW, "$defs": {"one": one, "two": two}, **rest, **top}
    try:
        expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    except RecursionError:
        return
    reason = refused(check_of(schema), value)
    assume(reason is None or "(at $" in reason)  # otherwise no column could hold the value
    assert (reason is None) == expected
