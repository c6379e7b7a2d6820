"""Avro payloads as JSON and back; fastavro reads what we write, and we what it writes."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import fastavro
import pytest

from ottla.schemas.avro.json_values import AvroValues
from ottla.schemas.schema import SchemaSource

NESTED = {
    "type": "record",
    "name": "R",
    "namespace": "n",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "u", "type": ["null", "string"], "default": None},
        {"name": "m", "type": {"type": "map", "values": ["int", "string", "double"]}},
        {"name": "items", "type": {"type": "array", "items": ["null", "R"]}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "f", "type": "double"},
        {"name": "b", "type": "bytes"},
        {"name": "x", "type": {"type": "fixed", "name": "X", "size": 2}},
    ],
}
LEAF = {"a": 2**31 - 1, "u": None, "m": {}, "items": [], "e": "B", "f": "NaN", "b": "", "x": "ab"}
VALUE = {
    "a": -5,
    "u": "hé",
    "m": {"k": {"int": 1}, "l": {"string": "x"}, "d": {"double": 1.5}},
    "items": [None, LEAF],
    "e": "A",
    "f": 1.0,
    "b": "\x00ÿ",
    "x": "zz",
}


def values(schema: Any) -> AvroValues:
    return AvroValues(SchemaSource(json.dumps(schema)))


def test_nested_values() -> None:
    payload = values(NESTED).to_payload(VALUE)
    assert values(NESTED).to_json(payload) == VALUE
    read: Any = fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(NESTED), None)
    assert (read["a"], read["u"], read["b"], read["x"], read["e"]) == (-5, "hé", b"\x00\xff", b"zz", "A")
    assert read["m"] == {"k": 1, "l": "x", "d": 1.5} and math.isnan(read["items"][1]["f"])


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("null", None),
        ("boolean", True),
        ("int", -(2**31)),
        ("long", -(2**63)),
        ("long", 2**63 - 1),
        ("float", 0.5),
        ("double", "Infinity"),
        ("double", "-Infinity"),
        ("string", "→"),
        ("bytes", "\xff"),
        ({"type": "array", "items": "long"}, list(range(300))),
        ({"type": "map", "values": "string"}, {"a": "b", "": ""}),
    ],
)
def test_what_fastavro_writes(schema: Any, value: Any) -> None:
    payload = values(schema).to_payload(value)
    assert values(schema).to_json(payload) == value
    theirs = io.BytesIO()
    content = value.encode("latin-1") if schema == "bytes" else float(value) if schema == "double" else value
    fastavro.schemaless_writer(theirs, fastavro.parse_schema(schema), content)
    assert theirs.getvalue() == payload


def test_unions_with_and_without_a_tag() -> None:
    union = values(["null", "int", "string", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}])
    for given, shown in (
        (None, None),
        (1, {"int": 1}),
        ("a", {"string": "a"}),
        ({"x": 1}, {"P": {"x": 1}}),
        ({"P": {"x": 1}}, {"P": {"x": 1}}),
    ):
        assert union.to_json(union.to_payload(given)) == shown


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"a": "x"}, "$.a: 'x' is no int"),
        ({"a": True}, "$.a: True is no int"),
        ({"a": 2**40}, "$.a: 1099511627776 is no int: it has more bits"),
        ({"u": 3}, "$.u: 3 is no string"),
        ({"z": 1}, "n.R has no field 'z'"),
        ({"m": {"k": None}}, "$.m.k: None is none of int, string, double"),
        ({"m": []}, "$.m: [] is not an object"),
        ({"items": {}}, "$.items: {} is not an array"),
        ({"items": [{"n.R": {}}]}, "$.items[0]: the field 'a' of n.R is missing, and has no default"),
        ({"x": "a"}, "$.x: 1 bytes, and n.X has 2"),
        ({"b": "→"}, "$.b: '→' is no string of U+0000 to U+00FF"),
        ({"e": "C"}, "$.e: 'C' is none of A, B"),
        ({"f": "many"}, "$.f: 'many' is no double"),
    ],
)
def test_what_does_not_fit(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        values(NESTED).to_payload(VALUE | change)
    assert told in str(raised.value)


def test_a_payload_that_is_none() -> None:
    with pytest.raises(ValueError, match="bytes are left over"):
        values("int").to_json(b"\x00\x00")
    with pytest.raises(ValueError, match="ends too early"):
        values("string").to_json(b"\x04a")
