"""Avro payloads as columns: what fastavro wrote comes out, whatever the schema; what nobody wrote harms nobody."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro.cases import cases, encoded, source

from ottla.columns.avro.decoder import decoder
from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.schema import SchemaSource

slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck))


@slow_data
@given(st.data(), cases())
def test_columns_hold_what_fastavro_wrote(data: st.DataObject, case: Any) -> None:
    values = data.draw(st.lists(case.values, max_size=6))
    payloads = [encoded(case.schema, value, b"12345") for value in values]
    decoded = decoder(source(case.schema)).decode(pa.array([None, *payloads], pa.binary()), 5)
    decoded.columns.validate(full=True)
    assert decoded.reasons == {}
    assert decoded.columns.to_pylist() == [None, *(case.shown(value) for value in values)]


@slow_data
@given(st.data(), cases(), st.randoms(use_true_random=False))
def test_bytes_that_nobody_wrote_are_bad_rows_among_good_ones(data: st.DataObject, case: Any, rng: Any) -> None:
    good = data.draw(case.values)
    payload = encoded(case.schema, good)
    broken = []
    for _ in range(8):
        other = bytearray(payload + rng.randbytes(rng.randrange(4)))
        for _ in range(rng.randrange(1, 4)):
            if other:
                other[rng.randrange(len(other))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        broken.append(bytes(other[: rng.randrange(len(other) + 1)]))
    rows = [payload, *broken, None, payload]
    decoded = decoder(source(case.schema)).decode(pa.array(rows, pa.binary()))
    decoded.columns.validate(full=True)
    found = decoded.columns
    assert found[0].as_py() == found[-1].as_py() == case.shown(good)
    assert 0 not in decoded.reasons and len(rows) - 1 not in decoded.reasons and len(rows) - 2 not in decoded.reasons
    # Not what they are: a number that broke may be a moment that Arrow can hold and Python cannot.
    assert not any(found[row].is_valid for row in decoded.reasons)


@slow_data
@given(st.data(), cases())
def test_a_value_cut_short_is_bad_or_needs_no_more(data: st.DataObject, case: Any) -> None:
    payload = encoded(case.schema, data.draw(case.values))
    cut = [payload[:size] for size in range(len(payload))]
    decoded = decoder(source(case.schema)).decode(pa.array(cut, pa.binary()))
    assert sorted(decoded.reasons) == list(range(len(payload)))


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "lines", "type": {"type": "array", "items": "string"}}],
}


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"", "id: the value ends too early"),
        (b"\xff" * 11, "id: a number has too many bytes"),
        (b"\0\x02\x01", "lines[]: a length is negative"),
        (b"\0\x02\x02\xff", "lines[]: a string is not UTF-8"),
        (b"\0\x10\x02a", "lines: more items than the value can hold"),
        (b"\0\x02\x10ab", "lines[]: the value ends too early"),
        (b"\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0", "lines: more items than the value can hold"),
    ],
)
def test_reasons_say_what_and_where(payload: bytes, why: str) -> None:
    assert decoder(source(ORDER)).decode(pa.array([payload], pa.binary())).reasons == {0: why}


def test_a_value_shorter_than_its_prefix_is_bad() -> None:
    assert decoder(source(ORDER)).decode(pa.array([b"123"], pa.binary()), 5).reasons == {0: "the value ends too early"}


def test_items_without_bytes_are_bounded() -> None:
    schema = {"type": "array", "items": "null"}
    many = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\0"
    decoded = decoder(source(schema)).decode(pa.array([many, b"\x06\0", many], pa.binary()))
    assert decoded.columns.to_pylist() == [None, [None] * 3, None]
    assert set(decoded.reasons.values()) == {"more items than the value can hold"}


def test_columns_grow_as_they_must() -> None:
    rows = [{"id": row, "lines": [f"{row}-{line}" for line in range(row * 40)]} for row in range(40)]
    values = pa.array([encoded(ORDER, row) for row in rows], pa.binary())
    decoded = decoder(source(ORDER)).decode(values.slice(3, 30))
    assert decoded.columns.to_pylist() == rows[3:33]


def test_symbols_longer_than_the_input_find_room() -> None:
    schema = {"type": "enum", "name": "E", "symbols": ["x" * 5000]}
    decoded = decoder(source(schema)).decode(pa.array([b"\0"] * 100, pa.binary()))
    assert decoded.columns.to_pylist() == ["x" * 5000] * 100


def test_types_are_those_of_sparks_from_avro() -> None:
    fields = {
        "maybe": ["null", "int"],
        "date": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-millis"},
        "local": {"type": "long", "logicalType": "local-timestamp-micros"},
        "nanos": {"type": "long", "logicalType": "timestamp-nanos"},
        "time": {"type": "int", "logicalType": "time-millis"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        "wide": ["int", "long"],
        "either": ["null", "int", "string"],
        "tags": {"type": "map", "values": ["null", "string"]},
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": key, "type": of} for key, of in fields.items()]}
    either = pa.struct([("member0", pa.int32()), ("member1", pa.string())])
    assert decoder(source(schema)).type == pa.struct(
        [
            pa.field("maybe", pa.int32()),
            pa.field("date", pa.date32(), nullable=False),
            pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
            pa.field("local", pa.timestamp("us"), nullable=False),
            pa.field("nanos", pa.int64(), nullable=False),
            pa.field("time", pa.int32(), nullable=False),
            pa.field("price", pa.decimal128(10, 2), nullable=False),
            pa.field("wide", pa.int64(), nullable=False),
            pa.field("either", either),
            pa.field("tags", pa.map_(pa.string(), pa.string()), nullable=False),
        ]
    )


def test_recursive_types_are_refused() -> None:
    tree = {"type": "record", "name": "T", "fields": [{"name": "below", "type": {"type": "array", "items": "T"}}]}
    with pytest.raises(UnsupportedSchema, match="T is inside itself"):
        decoder(source(tree))
    with pytest.raises(UnsupportedSchema, match="39 digits"):
        decoder(source({"type": "bytes", "logicalType": "decimal", "precision": 39}))


def test_types_that_multiply_are_refused() -> None:
    schema: Any = {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, 20):
        inner = {"name": "a", "type": schema}
        schema = {"type": "record", "name": f"R{level}", "fields": [inner, {"name": "b", "type": f"R{level - 1}"}]}
    with pytest.raises(UnsupportedSchema, match="columns"):
        decoder(source(schema))


def test_referenced_types_are_found() -> None:
    item = {"type": "record", "name": "Item", "namespace": "shop", "fields": [{"name": "sku", "type": "string"}]}
    order = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "item", "type": "Item"}]}
    made = SchemaSource(json.dumps(order), resolved={"shop.Item": json.dumps(item)})
    assert decoder(made).decode(pa.array([b"\x02a"], pa.binary())).columns.to_pylist() == [{"item": {"sku": "a"}}]
