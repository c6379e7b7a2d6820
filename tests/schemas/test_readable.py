"""Payloads and schemas that would keep a broker busy, or end it: each gets an answer, soon."""

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.limits import AVRO_DEPTH_MAX
from ottla.schemas.readable import reader_of
from ottla.schemas.schema import SchemaSource, SchemaType

LIST = {
    "type": "record",
    "name": "a.Link",
    "fields": [{"name": "it", "type": "string"}, {"name": "next", "type": ["null", "Link"]}],
}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "leaves", "type": {"type": "map", "values": "double"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 3}},
        {"name": "on", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "trees", "type": {"type": "array", "items": "Tree"}},
        {"name": "twin", "type": ["null", "Tree", "boolean", {"type": "array", "items": "float"}]},
    ],
}


def avro(schema: Any, payload: bytes) -> str | None:
    return reader_of(SchemaSource(json.dumps(schema)))(payload, None)


def of_json(schema: Any, value: Any) -> str | None:
    return reader_of(SchemaSource(json.dumps(schema), SchemaType.JSON))(json.dumps(value).encode(), None)


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def test_avro_may_be_recursive_but_not_without_an_end() -> None:
    link: Any = None
    for number in range(100):
        link = {"it": str(number), "next": link}
    payload = written(LIST, link)
    assert avro(LIST, payload) is None
    assert avro(LIST, payload[:-1]) == "the payload ends too early"
    assert avro(LIST, payload + b"x") == "1 bytes are left over behind the value"
    # Deeper than any stack: it used to end the process.
    assert avro(LIST, b"\0\2" * 500_000 + b"\0\0") == f"the payload is nested more than {AVRO_DEPTH_MAX} deep"


_trees = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "leaves": st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False), max_size=2),
            "kind": st.sampled_from("AB"),
            "mark": st.binary(min_size=3, max_size=3),
            "on": st.integers(0, 2**40),
            "trees": st.lists(_trees, max_size=2),
            "twin": st.none() | st.booleans() | _trees | st.lists(st.floats(width=32, allow_nan=False), max_size=2),
        }
    )
)


@given(_trees, st.data())
def test_what_is_walked_through_is_what_is_read(tree: Any, data: st.DataObject) -> None:
    payload = written(TREE, tree)
    assert avro(TREE, payload) is None
    assert avro(TREE, payload[: data.draw(st.integers(0, len(payload) - 1))]) is not None


@pytest.mark.parametrize(
    ("of", "logical", "value"),
    [
        ("long", "timestamp-millis", 2**63 - 1),
        ("long", "timestamp-micros", -(2**63)),
        ("int", "date", 2**31 - 1),
        ("int", "time-millis", -1),
        ("string", "uuid", "none"),
        ("bytes", "decimal", b"\xff" * 40),
    ],
)
def test_avro_values_need_not_fit_what_python_makes_of_them(of: str, logical: str, value: Any) -> None:
    schema = {"type": of, "logicalType": logical, "precision": 4}
    assert avro(schema, written(of, value)) is None
    assert avro({"type": "array", "items": schema}, written({"type": "array", "items": of}, [value, value])) is None


def test_avro_fields_without_bytes_are_counted() -> None:
    schema: Any = {"type": "record", "name": "R0", "fields": []}
    for number in range(1, 31):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{number - 1}"}]
        schema = {"type": "record", "name": f"R{number}", "fields": fields}
    assert avro(schema, b"") == "the payload has too many fields that take no bytes"
    assert avro({"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]}, b"") is None
    many = {"type": "array", "items": schema}
    assert avro(many, b"\xfe\xff\x07\0") is None  # items of no bytes are not looked at one by one
    assert avro(many, b"\x80\x80\x08\x02\0") == "the payload has more than 65536 items that take no bytes"


def test_json_of_exponential_work() -> None:
    parts: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(40)}
    parts["d40"] = {"type": "integer"}
    reason = of_json({"definitions": parts, "$ref": "#/definitions/d0"}, 1)
    assert reason is not None and "more work" in reason
    assert of_json({"definitions": parts, "$ref": "#/definitions/d36"}, 1) is None
    assert "not of type" in str(of_json({"definitions": parts, "$ref": "#/definitions/d36"}, "one"))


def test_json_items_are_unique_as_json_means_it() -> None:
    unique = {"uniqueItems": True}
    assert of_json(unique, [{"a": number} for number in range(5_000)]) is None
    assert of_json(unique, [1, True, "1", [1], [True], {"a": 1}, {"a": [1]}, None, 0, False]) is None
    for twice in ([1, 1.0], [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], [[], []], [None, None]):
        assert "not unique" in str(of_json(unique, twice))


def test_json_schemas_that_make_no_sense_are_a_reason() -> None:
    assert "could not be checked" in str(of_json({"type": "foo"}, 1))
    assert "could not be checked" in str(of_json({"multipleOf": 0.1}, 10**400))
    assert "could not be checked" in str(of_json({"$ref": "#"}, 1))
    assert "could not be checked" in str(of_json({"pattern": "("}, "x"))
