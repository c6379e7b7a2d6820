"""JSON schemas as text: what comes back, what is refused, and where references lead."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from tests.schemas.json.diff.cases import Json

from ottla.model import limits
from ottla.schemas.json import JsonSchema, parse_json
from ottla.schemas.json.dialects import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12, Dialect, dialect_of
from ottla.schemas.json.diff.schemas import differences
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType

NEW = "https://json-schema.org/draft/2020-12/schema"


def parsed(text: str, references: Mapping[str, str] | None = None) -> JsonSchema:
    return parse_json(SchemaSource(text, SchemaType.JSON, resolved=references or {}))


def same(tree: Json, references: Mapping[str, str], plain: Json) -> bool:
    """Whether a schema with references says what another says without."""
    if "$schema" in tree:
        plain = {"$schema": tree["$schema"], **plain}
    one, other = parsed(json.dumps(tree), references), parsed(json.dumps(plain))
    return not differences(one.node, other.node) and not differences(other.node, one.node)


@pytest.mark.parametrize(
    ("text", "canonical", "normalized"),
    [
        ("true", "true", "true"),
        ("{ }", "{}", "{}"),
        (
            '{"type" : "object",\n "properties": {"b": {}, "a": true}}',
            '{"type":"object","properties":{"b":{},"a":true}}',
            '{"properties":{"a":true,"b":{}},"type":"object"}',
        ),
        # numbers keep their digits, as Java's BigDecimal has them
        (
            '{"maximum":1.10,"minimum":1e2,"multipleOf":1E-8,"x":[0.0,-0.0,12345678901234567890,-0]}',
            '{"maximum":1.10,"minimum":1E+2,"multipleOf":1E-8,"x":[0.0,0.0,12345678901234567890,0]}',
            '{"maximum":1.10,"minimum":1E+2,"multipleOf":1E-8,"x":[0.0,0.0,12345678901234567890,0]}',
        ),
        ('{"a":1,"b":2,"a":3}', '{"a":3,"b":2}', '{"a":3,"b":2}'),
        (
            '{"z":"\\u00e9\\u0001\\u001f\\n\\/","Z":1,"\\uff61":1,"\\ud83d\\ude00":1}',
            '{"z":"é\\u0001\\u001F\\n/","Z":1,"\uff61":1,"😀":1}',
            '{"Z":1,"z":"é\\u0001\\u001F\\n/","😀":1,"\uff61":1}',
        ),
    ],
)
def test_a_schema_comes_back_compact_and_normal_in_order(text: str, canonical: str, normalized: str) -> None:
    assert parsed(text).canonical == canonical
    assert parsed(text).normalized == normalized
    assert parsed(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("http://json-schema.org/draft-04/schema#", DRAFT_4),
        ("http://json-schema.org/schema", DRAFT_4),
        ("https://json-schema.org/draft-06/schema", DRAFT_6),
        ("http://json-schema.org/draft-07/schema#", DRAFT_7),
        ("https://json-schema.org/draft/2019-09/schema", DRAFT_2019_09),
        ("https://json-schema.org/draft/2020-12/schema#", DRAFT_2020_12),
        ("http://example.com/mine", DRAFT_7),
    ],
)
def test_the_draft_is_the_one_that_is_named(url: str, dialect: Dialect) -> None:
    assert dialect_of({"$schema": url}) is dialect
    assert dialect_of({}) is DRAFT_7


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "expected a schema"),
        ("1", "expected a schema"),
        ('"string"', "expected a schema"),
        ('{"type":"foo"}', "unknown type: [foo] at #"),
        ('{"type":1}', "type is neither a string nor an array of strings"),
        ('{"type":["string",1]}', "type is neither"),
        ('{"properties":[]}', "properties is not an object at #"),
        ('{"properties":{"a":1}}', "expected a schema (an object or a boolean) at #/properties/a"),
        ('{"properties":{"a":{"properties":{"b":{"type":"x"}}}}}', "at #/properties/a/properties/b"),
        ('{"required":true}', "required is not an array at #"),
        ('{"required":[1]}', "required is not an array of strings"),
        ('{"items":3}', "expected a schema"),
        ('{"minLength":"1"}', "minLength is not a number"),
        ('{"minLength":1.5}', "minLength is not an integer"),
        ('{"minimum":true}', "minimum is not a number"),
        ('{"multipleOf":0}', "multipleOf should not be 0"),
        ('{"uniqueItems":1}', "uniqueItems is not a boolean"),
        ('{"pattern":1}', "pattern is not a string"),
        ('{"enum":1}', "enum is not an array"),
        ('{"allOf":{}}', "allOf is not an array"),
        ('{"anyOf":[1]}', "at #/anyOf/0"),
        ('{"not":1}', "at #/not"),
        ('{"dependencies":{"a":[1]}}', "not an array of strings at #/dependencies/a"),
        ('{"title":1}', "title is not a string"),
        ('{"$schema":1}', "$schema is not a string"),
        ('{"$ref":1}', "$ref is not a string"),
        ('{"$ref":"#/definitions/A"}', "cannot resolve $ref '#/definitions/A'"),
        ('{"$ref":"#name"}', "cannot resolve $ref '#name'"),
        ('{"$ref":"other.json"}', "cannot resolve $ref 'other.json': no reference has this name"),
        ('{"$ref":"http://127.0.0.1/x.json"}', "no reference has this name"),
        (
            '{"$schema":"http://json-schema.org/draft-04/schema#","exclusiveMaximum":5}',
            "exclusiveMaximum is not a boolean",
        ),
    ],
)
def test_what_is_no_schema_is_refused_with_what_and_where(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parsed(text)
    assert complaint in str(refused.value)


def test_what_nothing_refers_to_may_say_anything() -> None:
    assert parsed('{"definitions":{"A":{"type":"foo"}},"unknown":3,"format":"odd"}').canonical.endswith('"odd"}')


POINT = {"type": "object", "properties": {"x": {"type": "number"}}}


@pytest.mark.parametrize(
    "tree",
    [
        {"$ref": "#/definitions/P", "definitions": {"P": POINT}},
        {"$ref": "#/$defs/P", "definitions": {"P": POINT}},
        {"$ref": "#/$defs/P", "$defs": {"P": POINT}, "$schema": NEW},
        {"$ref": "#/definitions/a~1b%20c", "definitions": {"a/b c": POINT}},
        {"$ref": "#/definitions/L", "definitions": {"L": {"$ref": "#/definitions/P"}, "P": POINT}},
        {"$ref": "#p", "definitions": {"P": {"$id": "#p", **POINT}}},
        {"$ref": "#p", "$defs": {"P": {"$anchor": "p", **POINT}}, "$schema": NEW},
        {"$id": "http://a/root.json", "$ref": "point.json", "definitions": {"P": {"$id": "point.json", **POINT}}},
        {"$id": "http://a/root.json", "$ref": "http://a/root.json#/definitions/P", "definitions": {"P": POINT}},
    ],
)
def test_references_lead_to_places_in_the_schema(tree: Json) -> None:
    rest = {key: value for key, value in tree.items() if key != "$ref"}
    draft = {"$schema": tree["$schema"]} if "$schema" in tree else {}
    one = parsed(json.dumps({"type": "array", "items": {"$ref": tree["$ref"]}, **rest}))
    other = parsed(json.dumps({"type": "array", "items": POINT, **draft}))
    assert {each.kind for each in differences(one.node, other.node)} <= {"ID_CHANGED"}


@pytest.mark.parametrize(
    ("tree", "references"),
    [
        ({"items": {"$ref": "point.json"}}, {"point.json": json.dumps(POINT)}),
        ({"items": {"$ref": "point.json"}, "$schema": NEW}, {"point.json": json.dumps(POINT)}),
        ({"items": {"$ref": "./point.json"}, "$schema": NEW}, {"point.json": json.dumps(POINT)}),
        ({"items": {"$ref": "all.json#/definitions/P"}}, {"all.json": json.dumps({"definitions": {"P": POINT}})}),
        ({"items": {"$ref": "all.json#/$defs/P"}}, {"all.json": json.dumps({"definitions": {"P": POINT}})}),
        ({"items": {"$ref": "http://x/p.json"}}, {"http://x/p.json": json.dumps(POINT)}),
        # a reference that refers on
        (
            {"items": {"$ref": "link.json"}},
            {"point.json": json.dumps(POINT), "link.json": '{"$ref":"point.json"}'},
        ),
        # names are relative to the schema's id
        (
            {"$id": "http://x/y/root.json", "items": {"$ref": "http://x/y/point.json"}},
            {"point.json": json.dumps(POINT)},
        ),
    ],
)
def test_references_lead_to_other_schemas(tree: Json, references: Mapping[str, str]) -> None:
    plain = {"items": POINT} | ({"$id": tree["$id"]} if "$id" in tree else {})
    assert same(tree, references, plain)


def test_a_draft_s_own_schema_may_be_referred_to() -> None:
    link = '{"type":"object","properties":{"schema":{"$ref":"http://json-schema.org/draft-07/schema#"}}}'
    assert not parsed(link).incompatibilities(parsed(link))
    modern = f'{{"$schema":"{NEW}","items":{{"$ref":"{NEW}"}}}}'
    assert not parsed(modern).incompatibilities(parsed(modern))


def test_links_that_lead_in_a_circle_say_nothing() -> None:
    circle = '{"definitions":{"A":{"$ref":"#/definitions/B"},"B":{"$ref":"#/definitions/A"}},"$ref":"#/definitions/A"}'
    assert not parsed(circle).incompatibilities(parsed("false"))
    assert not differences(parsed(circle).node, parsed(circle).node)


DEEP = limits.SCHEMA_DEPTH_MAX + 1


@pytest.mark.parametrize(
    "text",
    [
        '{"not":' * DEEP + "true" + "}" * DEEP,
        "[" * 100_000,
        " " * (limits.SCHEMA_TEXT_CHARS_MAX + 1),
        '{"a":NaN}',
    ],
    ids=["deep", "brackets", "long", "NaN"],
)
def test_texts_beyond_the_bounds_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parsed(text)


def test_a_schema_as_deep_as_allowed_is_read_and_compared() -> None:
    depth = limits.SCHEMA_DEPTH_MAX
    nested = parsed('{"not":' * depth + "true" + "}" * depth)
    assert not nested.incompatibilities(nested)
