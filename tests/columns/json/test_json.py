"""JSON payloads as columns and back: whole batches and row by row give the same, and one bad row is one bad row."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.json.decoder import decoder
from ottla.columns.json.derive import derive_json
from ottla.columns.json.encoder import encoder
from ottla.schemas.schema import SchemaSource, SchemaType

slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


def source(schema: Any) -> SchemaSource:
    return SchemaSource(json.dumps(schema), SchemaType.JSON)


@st.composite
def cases(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema and values."""
    simple = {
        "integer": st.integers(-(2**63), 2**63 - 1),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "boolean": st.booleans(),
        "string": TEXT,
    }
    kind = draw(st.sampled_from([*simple, *(["object", "array"] if depth else [])]))
    if kind == "array":
        schema, values = draw(cases(depth - 1))
        return {"type": "array", "items": schema}, st.lists(values, max_size=3)
    if kind == "object":
        return draw(objects(depth - 1))
    nullable = draw(st.booleans())
    schema = {"type": ["null", kind]} if nullable else {"type": kind}
    return schema, st.none() | simple[kind] if nullable else simple[kind]


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    fields = {f"f{index}": draw(cases(depth)) for index in range(draw(st.integers(1, 4)))}
    schema = {"type": "object", "properties": {name: each for name, (each, _) in fields.items()}}
    return schema, st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})


@slow_data
@given(st.data(), objects(), st.booleans())
def test_columns_hold_what_was_written(data: st.DataObject, case: Any, spread: bool) -> None:
    schema, values = case
    rows = data.draw(st.lists(values, min_size=1, max_size=5))
    payloads = [b"12345" + json.dumps(row, indent=2 if spread else None).encode() for row in rows]
    array = pa.array([*payloads, None], pa.binary())
    decoded = decoder(source(schema)).decode(array, 5)
    assert decoded.reasons == {} and decoded.columns.to_pylist() == [*rows, None]
    beside = decoder(source(schema)).decode(pa.array([*payloads, None, b"12345nonsense"], pa.binary()), 5)
    assert beside.columns.to_pylist() == [*rows, None, None]
    assert list(beside.reasons) == [len(rows) + 1]


@slow_data
@given(st.data(), objects())
def test_what_we_write_is_json_that_comes_back(data: st.DataObject, case: Any) -> None:
    schema, values = case
    rows = data.draw(st.lists(values, min_size=1, max_size=5))
    columns = decoder(source(schema)).decode(pa.array([json.dumps(row).encode() for row in rows])).columns
    written = encoder(source(schema)).encode(columns, b"12345").to_pylist()
    assert [without_null(row) for row in rows] == [json.loads(each[5:]) for each in written]


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_null(each) for key, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


ORDER = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}}


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "Expecting value"),
        (b"[1]", "the value is no object"),
        (b'{"id": "x"}', "id is no whole number"),
        (b'{"id": 1.5}', "id is no whole number"),
        (b'{"id": 1e30}', "id does not fit 64 bits"),
        (b'{"note": 5}', "note is no string"),
        (b'{"id": NaN}', "NaN is no JSON"),
        (b'{"note": "\\ud800"}', "half of a surrogate pair"),
        (b'{"id": 1} {"id": 2}', "Extra data"),
        (b'{"note": "\xff"}', "not UTF-8: invalid start byte"),
        (b'{"id": 1', "Expecting"),
        (b"[" * 100_000, "nested more than 500 deep"),
    ],
)
def test_one_bad_row_is_one_bad_row(payload: bytes, why: str) -> None:
    good = b'{"id": 1, "note": "n", "more": {}}'
    decoded = decoder(source(ORDER)).decode(pa.array([good, payload, good], pa.binary()))
    assert decoded.columns.to_pylist() == [{"id": 1, "note": "n"}, None, {"id": 1, "note": "n"}]
    assert list(decoded.reasons) == [1] and why in decoded.reasons[1]


def test_values_cannot_pass_for_each_other() -> None:
    rows = [b'{"id": 1}\n{"id": 2}', b" ", b'{"id": 3}']
    decoded = decoder(source(ORDER)).decode(pa.array(rows, pa.binary()))
    assert decoded.columns.to_pylist() == [None, None, {"id": 3, "note": None}]
    rows = [b'{"note": "}', b'{"note": "x"}', b'{"id": 3}\n{"id": 4}']
    decoded = decoder(source(ORDER)).decode(pa.array(rows, pa.binary()))
    assert decoded.columns.to_pylist() == [None, {"id": None, "note": "x"}, None]


def test_times_bytes_maps_and_anything() -> None:
    schema = {
        "$ref": "#/definitions/Order",
        "definitions": {
            "Order": {
                "type": "object",
                "properties": {
                    "at": {"type": "string", "format": "date-time"},
                    "day": {"oneOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
                    "raw": {"type": "string", "contentEncoding": "base64"},
                    "tags": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "any": {"oneOf": [{"type": "string"}, {"type": "object"}]},
                    "kind": {"enum": ["a", "b"]},
                },
            }
        },
    }
    made = decoder(source(schema))
    assert [str(field.type) for field in made.type] == [
        "timestamp[us, tz=UTC]", "date32[day]", "binary", "map<string, int64>", "string", "string",
    ]  # fmt: skip
    value = {
        "at": "2026-01-02T03:04:05.000006+01:00", "day": "2026-01-02", "raw": "AAE=", "tags": {"x": 1},
        "any": {"b": [1]}, "kind": "a",
    }  # fmt: skip
    (row,) = made.decode(pa.array([json.dumps(value).encode()])).columns.to_pylist()
    assert row == {
        "at": dt.datetime(2026, 1, 2, 2, 4, 5, 6, tzinfo=dt.UTC), "day": dt.date(2026, 1, 2), "raw": b"\0\1",
        "tags": [("x", 1)], "any": '{"b":[1]}', "kind": "a",
    }  # fmt: skip


def test_recursive_schemas_are_refused() -> None:
    tree = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#"}}}}
    with pytest.raises(UnsupportedSchema, match="inside itself"):
        decoder(source(tree))


TYPE = pa.struct(
    [
        pa.field("id", pa.int64(), nullable=False), pa.field("note", pa.string()), ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("raw", pa.binary()), ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int32())), ("inner", pa.struct([("x", pa.float32())])),
    ]
)  # fmt: skip


def test_a_schema_made_from_columns_describes_what_is_written_from_them() -> None:
    row = {
        "id": 1, "note": 'a"\\\n', "price": Decimal("1.50"), "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "day": dt.date(2026, 1, 2), "raw": b"\0\1", "tags": ["a", None], "counts": [("k", 2)], "inner": {"x": 0.5},
    }  # fmt: skip
    empty = dict.fromkeys(row) | {"id": 2}
    schema = derive_json(TYPE, "Order")
    written = encoder(schema).encode(pa.array([row, empty, None], TYPE)).to_pylist()
    assert written[2] is None
    for payload in written[:2]:
        jsonschema.validate(json.loads(payload), json.loads(schema.text))
    assert json.loads(written[0]) == {
        "id": 1, "note": 'a"\\\n', "price": 1.5, "at": "2026-01-02T03:04:05.000006Z", "day": "2026-01-02",
        "raw": "AAE=", "tags": ["a", None], "counts": {"k": 2}, "inner": {"x": 0.5},
    }  # fmt: skip
    assert json.loads(written[1]) == {"id": 2}
    decoded = decoder(schema).decode(pa.array(written[:1], pa.binary())).columns.to_pylist()
    assert decoded == [{**row, "price": 1.5}]


def test_numbers_that_json_does_not_have_are_errors() -> None:
    numbers = {"type": "object", "properties": {"x": {"type": "number"}}}
    with pytest.raises(ValueError, match="row 1: x is NaN or infinite"):
        encoder(source(numbers)).encode(pa.array([{"x": 1.0}, {"x": float("nan")}], pa.struct([("x", pa.float64())])))
