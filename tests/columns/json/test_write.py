"""Columns as JSON: what goes into which schema, what comes back, and that the same value is always the same text."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from tests.columns.json.texts import source

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.json.decoder import decoder
from ottla.columns.json.derive import derive_json
from ottla.columns.json.encoder import JsonMismatch, encoder
from ottla.schemas.readable import reader_of

AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
# One column of each type: what was written, and what is read (the same unless told).
COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[Any] | None]] = {
    "flag": (pa.bool_(), [True, False, None], None),
    "tiny": (pa.int8(), [1, -128, None], None),
    "long": (pa.int64(), [2**63 - 1, -(2**63), 0], None),
    "float": (pa.float32(), [0.5, -1.25, None], None),
    "double": (pa.float64(), [0.1, 1.7976931348623157e308, -5e-324], None),
    "decimal": (pa.decimal128(12, 2), [Decimal("1.50"), Decimal("-0.01"), None], [1.5, -0.01, None]),
    "text": (pa.string(), ['a"\\\n\x00é/😀\u2028', "", None], None),
    "raw": (pa.binary(), [b"\0\xff", b"", None], None),
    "day": (pa.date32(), [dt.date(2026, 1, 2), dt.date(1, 1, 1), dt.date(9999, 12, 31)], None),
    "at": (pa.timestamp("us", "UTC"), [AT, dt.datetime(1, 1, 1, tzinfo=dt.UTC), None], None),
    "milli": (pa.timestamp("ms", "Europe/Prague"), [AT.replace(microsecond=678000), None, None], None),
    "local": (pa.timestamp("us"), [AT.replace(tzinfo=None), None, None], [AT, None, None]),
    "nothing": (pa.null(), [None, None, None], None),
    "tags": (pa.list_(pa.string()), [["a", None, '"'], [], None], None),
    "nested": (pa.list_(pa.list_(pa.float32())), [[[0.5], None, []], [], None], None),
    "counts": (pa.map_(pa.string(), pa.int32()), [[("k", 1), ("", None)], [], None], None),
    "by_number": (pa.map_(pa.int32(), pa.int32()), [[(1, 1), (-2, 2)], [], None], [[("1", 1), ("-2", 2)], [], None]),
    "by_flag": (pa.map_(pa.bool_(), pa.date32()), [[(True, None)], [], None], [[("true", None)], [], None]),
    "by_day": (pa.map_(pa.date32(), pa.string()), [[(AT.date(), "x")], [], None], [[("2026-01-02", "x")], [], None]),
    "by_raw": (pa.map_(pa.binary(), pa.string()), [[(b"\0", "x")], [], None], [[("AA==", "x")], [], None]),
    "inner": (pa.struct([("x", pa.float32()), ("y", pa.string())]), [{"x": 1.5, "y": None}, None, None], None),
    "inners": (pa.list_(pa.struct([("x", pa.binary())])), [[{"x": b"1"}, None, {"x": None}], [], None], None),
}  # fmt: skip
TYPE = pa.struct([pa.field(name, of) for name, (of, _, _) in COLUMNS.items()])


def rows(of: pa.DataType = TYPE) -> pa.Array:
    values = [{name: column[1][row] for name, column in COLUMNS.items()} for row in range(3)]
    return pa.array([*values, None], of)


def test_what_is_written_is_read_and_is_what_the_schema_says() -> None:
    schema = derive_json(TYPE, "Wide")
    written = encoder(schema).encode(rows(), b"12345")
    assert written.to_pylist()[3] is None
    for payload in written.to_pylist()[:3]:
        jsonschema.validate(json.loads(payload[5:]), json.loads(schema.text))
        assert reader_of(schema)(payload[5:], None) is None
    decoded = decoder(schema).decode(written, 5)
    assert decoded.reasons == {}
    expected = {name: read if read is not None else given for name, (_, given, read) in COLUMNS.items()}
    assert decoded.columns.to_pylist()[:3] == [{name: each[row] for name, each in expected.items()} for row in range(3)]


def test_the_same_value_is_the_same_text_whatever_is_beside_it() -> None:
    schema, all_rows = derive_json(TYPE, "Wide"), rows()
    together = encoder(schema).encode(all_rows).to_pylist()
    for row in range(4):
        assert encoder(schema).encode(all_rows.slice(row, 1)).to_pylist() == [together[row]]
    keys = encoder(source({"type": "string"}))
    plain, beside = pa.array(["é"]), pa.array(["é", "\n", '"'])
    assert keys.encode(plain).to_pylist() == keys.encode(beside).to_pylist()[:1] == ['"é"'.encode()]


TIME = {"type": "string", "format": "date-time"}
DAY = {"type": "string", "format": "date"}
BYTES = {"type": "string", "contentEncoding": "base64"}
KINDS: dict[str, Any] = {
    "integer": {"type": "integer"}, "number": {"type": "number"}, "boolean": {"type": "boolean"},
    "string": {"type": "string"}, "time": TIME, "day": DAY, "bytes": BYTES, "any": {}, "null": {"type": "null"},
    "array": {"type": "array", "items": {}}, "map": {"type": "object", "additionalProperties": {}},
    "object": {"type": "object", "properties": {"x": {}}},
}  # fmt: skip
VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "int": (pa.int32(), 7), "long": (pa.int64(), 1700000000123), "float": (pa.float32(), 0.5),
    "double": (pa.float64(), 0.5), "decimal": (pa.decimal128(9, 2), Decimal("1.50")),
    "whole": (pa.decimal128(20, 0), Decimal(5)), "flag": (pa.bool_(), True), "text": (pa.string(), "x"),
    "moment": (pa.timestamp("us", "UTC"), AT), "local": (pa.timestamp("us"), AT.replace(tzinfo=None)),
    "date": (pa.date32(), AT.date()), "raw": (pa.binary(), b"\0"), "list": (pa.list_(pa.int32()), [1]),
    "map": (pa.map_(pa.string(), pa.int32()), [("x", 1)]), "struct": (pa.struct([("x", pa.int32())]), {"x": 1}),
}  # fmt: skip
# Which columns go into which schema. An integer is no time and a time no integer: no unit is said, so none is changed.
TAKES = {
    "integer": "int long whole", "number": "int long whole float double decimal", "boolean": "flag",
    "string": "text moment local date raw", "time": "moment local", "day": "date", "bytes": "raw",
    "any": " ".join(VALUES), "null": "", "array": "list", "map": "map", "object": "struct",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_into_every_schema(kind: str) -> None:
    schema = source({"type": "object", "properties": {"f": KINDS[kind]}})
    contract = reader_of(schema)
    for name, (of, value) in VALUES.items():
        column = pa.struct([("f", of)])
        if name not in TAKES[kind].split():
            if name == "text" and kind in ("time", "day", "bytes"):
                continue
            with pytest.raises(JsonMismatch, match=r"^f is .*, but the schema says"):
                encoder(schema).fits(column)
            continue
        (payload,) = encoder(schema).encode(pa.array([{"f": value}], column)).to_pylist()
        assert contract(payload, None) is None
        assert decoder(schema).decode(pa.array([payload])).reasons == {}


def test_numbers_are_written_raw() -> None:
    schema = source({"type": "object", "properties": {"f": {"type": "integer"}}})
    written = encoder(schema).encode(pa.array([{"f": 1700000000123}], pa.struct([("f", pa.int64())])))
    assert written.to_pylist() == [b'{"f":1700000000123}']


def test_text_goes_into_times_and_bytes_if_it_is_some() -> None:
    column = pa.struct([("f", pa.string())])
    for schema, good, bad in ((TIME, "2026-01-02T03:04:05Z", "now"), (DAY, "2026-01-02", "2026"), (BYTES, "AA==", "A")):
        made = encoder(source({"type": "object", "properties": {"f": schema}}))
        (payload,) = made.encode(pa.array([{"f": good}], column)).to_pylist()
        assert json.loads(payload) == {"f": good}
        for text in (pa.string(), pa.large_string()):
            with pytest.raises(JsonMismatch, match="row 2: f is no "):
                made.encode(pa.array([{"f": good}, {"f": None}, {"f": bad}], pa.struct([("f", text)])))


LIST = pa.struct([("l", pa.list_(pa.float64()))])
LISTS = {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "number"}}}}


@pytest.mark.parametrize(
    ("schema", "of", "values", "why"),
    [
        (LISTS, LIST, [{"l": [1.0]}, None, {"l": [2.0, float("nan")]}], "row 2: l\\[\\] is NaN"),
        (LISTS, LIST, [{"l": None}, {"l": [None]}], "row 1: l\\[\\] is null"),
        ({**LISTS, "required": ["l"]}, LIST, [{"l": []}, None, {}], "row 2: l is null"),
        ({**LISTS, "required": ["l", "m"]}, LIST, [], "the schema needs m"),
        (LISTS, pa.struct([("m", pa.int32())]), [], "the schema has no m"),
        ({"type": "integer"}, pa.timestamp("us"), [], "the value is timestamp.us., but the schema says long"),
        (DAY, pa.date32(), [dt.date(1, 1, 1)], None),
        (DAY, pa.int32(), [], "but the schema says day"),
    ],
)  # fmt: skip
def test_what_a_schema_cannot_hold_is_said_with_its_row(
    schema: Any, of: pa.DataType, values: list[Any], why: str
) -> None:
    made = encoder(source(schema))
    if why is None:
        made.encode(pa.array(values, of))
        return
    with pytest.raises(ValueError, match=why):
        made.encode(pa.array(values, of))


def test_decimals_that_are_no_integers_of_64_bits() -> None:
    made, of = encoder(source({"type": "integer"})), pa.decimal128(20, 0)
    numbers = [2**63 - 1, -(2**63), None]
    assert made.encode(pa.array(numbers, of)).to_pylist() == [b"9223372036854775807", b"-9223372036854775808", None]
    with pytest.raises(JsonMismatch, match="row 3: the value does not fit 64 bits"):
        made.encode(pa.array([*numbers, 2**63], of))


@pytest.mark.parametrize("micros", [253402300800000000, -62135596800000001])
def test_times_that_json_has_no_text_for(micros: int) -> None:
    column = pa.array([0, micros], pa.int64()).view(pa.timestamp("us", "UTC"))
    with pytest.raises(JsonMismatch, match="row 1: the value lies outside of the years 1 to 9999"):
        encoder(source(TIME)).encode(column)


@pytest.mark.parametrize(
    "of", [pa.duration("us"), pa.time64("us"), pa.map_(pa.struct([("x", pa.int32())]), pa.int32())]
)
def test_what_json_has_no_form_for(of: pa.DataType) -> None:
    with pytest.raises(UnsupportedSchema, match="JSON has no"):
        derive_json(of, "X")
    with pytest.raises(UnsupportedSchema, match="JSON has no"):
        encoder(source({})).fits(of)
