"""Columns as Avro payloads: fastavro reads what we write, and what a schema cannot hold is an error with its row."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro.cases import cases, encoded, source

from ottla.columns.avro.decoder import decoder
from ottla.columns.avro.derive import derive_avro
from ottla.columns.avro.encoder import encoder
from ottla.columns.codec import UnsupportedSchema

slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck))


def read(schema: Any, payload: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(schema))


@slow_data
@given(st.data(), cases())
def test_fastavro_reads_what_we_write(data: st.DataObject, case: Any) -> None:
    values = data.draw(st.lists(case.values, max_size=6))
    payloads = [encoded(case.schema, value) for value in values]
    columns = decoder(source(case.schema)).decode(pa.array([b"", *payloads, None], pa.binary())).columns.slice(1)
    written = encoder(source(case.schema)).encode(columns, b"12345").to_pylist()
    for value, payload in zip(values, written[:-1], strict=True):
        if case.shown(value) is None:
            assert payload is None
            continue
        assert payload[:5] == b"12345"
        again = decoder(source(case.schema)).decode(pa.array([payload], pa.binary()), 5)
        assert again.columns.to_pylist() == [case.shown(value)]
        read(case.schema, payload[5:])
    assert written[-1] is None


RECORD = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "BB"]}},
        {"name": "more", "type": {"type": "map", "values": "double"}, "default": {"x": 1.5}},
    ],
}
ROW = {
    "id": 5,
    "note": None,
    "price": Decimal("-12.3"),
    "at": dt.datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC),
    "tags": ["a", None],
    "kind": "BB",
}
TYPE = pa.struct(
    [
        ("kind", pa.large_string()),
        ("id", pa.int16()),
        ("note", pa.string()),
        ("price", pa.decimal128(7, 1)),
        ("at", pa.timestamp("us", "Europe/Berlin")),
        ("tags", pa.large_list(pa.string())),
    ]
)


def test_columns_of_other_types_and_orders_are_converted() -> None:
    (payload,) = encoder(source(RECORD)).encode(pa.array([ROW], TYPE)).to_pylist()
    assert read(RECORD, payload) == {**ROW, "more": {"x": 1.5}}


AT_MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


@pytest.mark.parametrize(
    ("schema", "of", "value", "number"),
    [
        (AT_MILLIS, pa.int64(), 1_700_000_000_123, 1_700_000_000_123),  # a number is what it is
        ("long", pa.timestamp("us", "UTC"), 1_700_000_000_123_456, 1_700_000_000_123),  # milliseconds, as Spark
        (AT_MILLIS, pa.timestamp("us", "UTC"), -1, -1),  # before 1970, too, parts are cut off downwards
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("ns"), 1_999, 1),
    ],
)
def test_times_keep_their_unit(schema: Any, of: pa.DataType, value: int, number: int) -> None:
    (payload,) = encoder(source(schema)).encode(pa.array([value], pa.int64()).view(of)).to_pylist()
    assert read("long", payload) == number


def test_slices_are_written_alone() -> None:
    rows = [{**ROW, "id": row, "tags": [str(row)] * row, "note": None if row % 2 else "n"} for row in range(20)]
    columns = pa.array(rows, TYPE).slice(5, 9)
    payloads = encoder(source(RECORD)).encode(columns).to_pylist()
    assert [read(RECORD, payload) for payload in payloads] == [{**row, "more": {"x": 1.5}} for row in rows[5:14]]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": None}, "row 1: id is null"),
        ({"kind": "C"}, "row 1: kind is none of the enum's symbols"),
        ({"tags": None}, "row 1: tags is null"),
    ],
)
def test_what_the_schema_cannot_hold_is_an_error(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        encoder(source(RECORD)).encode(pa.array([ROW, {**ROW, **change}], TYPE))


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (pa.struct([*TYPE, ("other", pa.int32())]), "no field other"),
        (pa.struct([("id", pa.int64())]), "needs price"),
        (
            pa.struct([field if field.name != "tags" else ("tags", pa.string()) for field in TYPE]),
            "tags is STRING, which is not written as Avro's array",
        ),
        (
            pa.struct([field if field.name != "at" else ("at", pa.timestamp("us")) for field in TYPE]),
            "at is TIMESTAMP_NTZ, which is not written as Avro's timestamp-millis: cast it to TIMESTAMP",
        ),
        (
            pa.struct([field if field.name != "price" else ("price", pa.decimal128(20, 3)) for field in TYPE]),
            r"price is DECIMAL\(20,3\), which is not written as Avro's decimal\(9,2\): cast it to DECIMAL\(9,2\)",
        ),
        (pa.struct([*TYPE, ("NOTE", pa.string())]), "NOTE could be written to several fields"),
    ],
)
def test_columns_that_do_not_fit_are_refused_at_once(of: pa.DataType, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        encoder(source(RECORD)).fits(of)


def test_a_variant_has_no_avro_type() -> None:
    mark = pa.field("metadata", pa.binary(), False, {b"variant": b"true"})
    of = pa.struct([("v", pa.struct([pa.field("value", pa.binary(), False), mark]))])
    with pytest.raises(UnsupportedSchema, match="v: Avro has no type for VARIANT"):
        derive_avro(of)
    inner = {
        "type": "record",
        "name": "V",
        "fields": [{"name": each, "type": "bytes"} for each in ("value", "metadata")],
    }
    with pytest.raises(ValueError, match="v is VARIANT, which is not written as Avro's record"):
        encoder(source({"type": "record", "name": "R", "fields": [{"name": "v", "type": inner}]})).fits(of)


def test_fixed_of_another_size_is_an_error() -> None:
    schema = {"type": "fixed", "name": "F", "size": 3}
    with pytest.raises(ValueError, match="row 1: the value has not as many bytes"):
        encoder(source(schema)).encode(pa.array([b"abc", b"ab"], pa.binary()))


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_decimals_take_as_few_bytes_as_javas(number: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
    (payload,) = encoder(source(schema)).encode(pa.array([Decimal(number)], pa.decimal128(38, 0))).to_pylist()
    size = next(size for size in range(1, 17) if -(2 ** (8 * size - 1)) <= number < 2 ** (8 * size - 1))
    assert payload == bytes([2 * size]) + number.to_bytes(size, "big", signed=True)
