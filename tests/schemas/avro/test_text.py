"""Avro schemas as text: what comes back, what is normal, what is refused, and that nobody can make it take for ever."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from tests.schemas.avro.cases import INVALID
from tests.schemas.avro.generated import Json, schemas

from ottla.model import limits
from ottla.schemas.avro import parse_avro
from ottla.schemas.schema import InvalidSchema, SchemaSource

DEEP = limits.SCHEMA_DEPTH_MAX + 1


@pytest.mark.parametrize(("text", "complaint"), INVALID)
def test_what_is_no_schema_is_refused_with_what_and_where(text: str, complaint: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        parse_avro(SchemaSource(text))
    assert complaint in str(refused.value)


def test_what_is_already_registered_is_taken_more_leniently() -> None:
    odd = '{"type":"record","name":"Ré","fields":[{"name":"a","type":"int","default":"x"}]}'
    assert parse_avro(SchemaSource(odd), strict=False).canonical == odd


def test_namespaces_are_left_out_where_the_enclosing_one_says_the_same() -> None:
    text = (
        '{"namespace": "shop", "type": "record", "name": "Order", "doc": "one", "fields": ['
        '{"doc": "who", "name": "user", "type": {"name": "shop.User", "type": "record", "fields": []}},'
        '{"name": "other", "type": {"name": "else.User", "type": "record", "fields": []}},'
        '{"name": "again", "type": ["null", "shop.User"], "default": null}]}'
    )
    assert parse_avro(SchemaSource(text)).canonical == (
        '{"type":"record","name":"Order","namespace":"shop","doc":"one","fields":['
        '{"name":"user","type":{"type":"record","name":"User","fields":[]},"doc":"who"},'
        '{"name":"other","type":{"type":"record","name":"User","namespace":"else","fields":[]}},'
        '{"name":"again","type":["null","User"],"default":null}]}'
    )


@pytest.mark.parametrize(
    ("spelling", "normal"),
    [
        # properties are sorted, also inside; those of a logical type come first
        ('{"type":"int","z":1,"a":{"c":1,"b":2}}', '{"type":"int","a":{"b":2,"c":1},"z":1}'),
        (
            '{"type":"bytes","a":1,"scale":2,"precision":5,"logicalType":"decimal"}',
            '{"type":"bytes","logicalType":"decimal","precision":5,"scale":2,"a":1}',
        ),
        # scale 0 is no part of the logical type; a logical type that does not fit is a property
        (
            '{"type":"bytes","a":1,"scale":0,"precision":5,"logicalType":"decimal"}',
            '{"type":"bytes","logicalType":"decimal","precision":5,"a":1,"scale":0}',
        ),
        ('{"type":"string","logicalType":"date","a":1}', '{"type":"string","a":1,"logicalType":"date"}'),
        # docs of types that say nothing, aliases in order, defaults in the type of their field, an error is a record
        (
            '{"type":"error","name":"n.R","doc":"","aliases":["z","b"],"fields":['
            '{"name":"f","type":"float","default":1,"doc":"","aliases":["y","x"]},'
            '{"name":"g","type":["double","null"],"default":2},'
            '{"name":"m","type":{"type":"map","values":"long"},"default":{"b":1,"a":2}}]}',
            '{"type":"record","name":"R","namespace":"n","fields":['
            '{"name":"f","type":"float","doc":"","default":1.0,"aliases":["x","y"]},'
            '{"name":"g","type":["double","null"],"default":2.0},'
            '{"name":"m","type":{"type":"map","values":"long"},"default":{"a":2,"b":1}}],"aliases":["b","z"]}',
        ),
    ],
)
def test_all_spellings_have_one_normal_form(spelling: str, normal: str) -> None:
    assert parse_avro(SchemaSource(spelling)).normalized == normal


@settings(deadline=None)
@given(schemas())
def test_reading_back_what_was_written_changes_nothing(tree: Json) -> None:
    try:
        parsed = parse_avro(SchemaSource(json.dumps(tree)))
    except InvalidSchema:
        return
    assert parse_avro(SchemaSource(parsed.canonical)).canonical == parsed.canonical
    assert parse_avro(SchemaSource(parsed.normalized)).normalized == parsed.normalized


def test_a_reference_that_is_no_schema_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r"reference a\.Address: not JSON"):
        parse_avro(SchemaSource('"a.Address"', resolved={"a.Address": "{"}))


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP,
        "[" * 100_000,
        '{"a":' * 100_000,
        " " * (limits.SCHEMA_TEXT_CHARS_MAX + 1),
        '{"type":"int","a":' + "9" * 10_000 + "}",
        '{"type":"int","a":"\\ud800"}',
        '{"type":"int","a":NaN}',
    ],
    ids=["deep", "brackets", "braces", "long", "digits", "half a surrogate", "NaN"],
)
def test_texts_beyond_the_bounds_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_avro(SchemaSource(text))


def test_defaults_that_lead_to_each_other_are_followed_once() -> None:
    """Each level's default holds the one below twice: followed naively, that is 2^200 steps."""
    types = ['{"type":"record","name":"R0","fields":[]}']
    for level in range(200):
        fields = ",".join(f'{{"name":"{name}","type":"R{level}","default":{{}}}}' for name in "ab")
        types.append(f'{{"type":"record","name":"R{level + 1}","fields":[{fields}]}}')
    assert parse_avro(SchemaSource(f"[{','.join(types)}]")).canonical.count('"record"') == 201
