"""Columns as Protobuf payloads: the library reads what we write, and what a schema cannot hold is an error."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.protobuf.cases import Case, files, messages
from tests.columns.protobuf.fuzz import case, columns_shown

from ottla.columns.protobuf.decoder import ProtobufDecoder, decoder
from ottla.columns.protobuf.derive import derive_protobuf
from ottla.columns.protobuf.encoder import ProtobufEncoder, encoder, message_indexes
from ottla.schemas.schema import SchemaSource, SchemaType


@settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))
@given(st.data(), files())
def test_the_library_reads_what_we_write(data: st.DataObject, case: Case) -> None:
    made = [messages(data.draw, case.message) for _ in range(3)]
    values = pa.array([*(each.SerializeToString() for each in made), None], pa.binary())
    columns = decoder(case.source).decode(values).columns
    written = encoder(case.source).encode(columns, b"123456").to_pylist()
    assert written[-1] is None
    for message, payload in zip(made, written[:-1], strict=True):
        again = GetMessageClass(case.message)()
        again.ParseFromString(payload[6:])
        assert again == message


@pytest.mark.parametrize("seed", range(400_000, 400_030))
def test_what_is_read_of_odd_payloads_is_written_and_read_again(seed: int) -> None:
    made = case(seed)
    reading, writing_it = ProtobufDecoder(made.message), ProtobufEncoder(made.message)
    columns = reading.decode(pa.array(made.payloads, pa.binary())).columns
    if any(field.is_required and field.name not in columns.type.names for field in made.message.fields):
        return  # a message without columns that must be there
    again = reading.decode(writing_it.encode(columns))
    assert again.reasons == {}
    assert columns_shown(again.columns, made.message) == columns_shown(columns, made.message)


TYPE = pa.struct(
    [
        pa.field("id", pa.int64(), nullable=False), ("note", pa.string()), ("at", pa.timestamp("us", "UTC")),
        ("span", pa.duration("us")), ("tags", pa.list_(pa.field("element", pa.string(), nullable=False))),
        ("counts", pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
        ("inner_part", pa.struct([("x", pa.float32())])),
    ]
)  # fmt: skip


def test_a_schema_made_from_columns_takes_them_back_and_forth() -> None:
    schema = derive_protobuf(TYPE, "Order")
    row: dict[str, Any] = {
        "id": 1, "note": None, "at": dt.datetime(1960, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "span": -dt.timedelta(seconds=1, microseconds=5), "tags": ["a"], "counts": [("k", 2)], "inner_part": {"x": 0.5},
    }  # fmt: skip
    written = encoder(schema).encode(pa.array([row, None], TYPE))
    decoded = decoder(schema).decode(written)
    assert decoded.columns.to_pylist() == [row, None] and decoded.reasons == {}
    assert message_indexes(schema, "") == (0,)


SCHEMA = """syntax = "proto2"; import "google/protobuf/timestamp.proto"; enum E { ONE = 1; }
message M { optional int32 a = 1; repeated int32 c = 2; optional int64 n = 3; optional google.protobuf.Timestamp t = 4;
  optional float f = 5; map<string, int32> m = 6; optional string s = 7; optional E e = 8; optional string S = 9; }"""
MOMENT, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")


def writing(text: str = SCHEMA) -> ProtobufEncoder:
    return encoder(SchemaSource(text, SchemaType.PROTOBUF))


@pytest.mark.parametrize(
    ("name", "of", "why"),
    [
        ("b", pa.int32(), "the schema has no field b"),
        ("c", pa.string(), "c is STRING; the schema has a repeated field there"),
        (
            "n",
            MOMENT,
            r"n is TIMESTAMP; the schema has int64 there; say what number is meant \(unix_millis",
        ),
        ("n", NTZ, "n is TIMESTAMP_NTZ; the schema has int64 there; cast it to TIMESTAMP"),
        ("t", pa.int64(), r"t is BIGINT; the schema has google.protobuf.Timestamp there; .*timestamp_millis"),
        ("t", NTZ, "t is TIMESTAMP_NTZ; the schema has google.protobuf.Timestamp there; cast it to TIMESTAMP"),
        ("t", pa.duration("us"), "t is INTERVAL DAY TO SECOND; the schema has google.protobuf.Timestamp"),
        ("f", pa.float64(), "f is DOUBLE; the schema has float there; cast it"),
        ("m", pa.map_(pa.int32(), pa.int32()), "m.key is INT; the schema has string there"),
        ("s", pa.binary(), "s is BINARY; the schema has string there"),
        ("s", pa.struct([("x", pa.int32())]), "s is STRUCT<x: INT>; the schema has string there"),
    ],
)
def test_columns_that_do_not_fit_are_refused_at_once(name: str, of: pa.DataType, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        writing().fits(pa.struct([(name, of)]))


@pytest.mark.parametrize(
    ("name", "of", "value", "why"),
    [
        ("a", pa.int64(), 2**40, "row 1: Value out of range"),
        ("c", pa.list_(pa.int32()), [1, None], "row 1: c has a null among its items"),
        ("m", pa.map_(pa.string(), pa.int32()), [("k", None)], "row 1: m has a null among its values"),
        ("e", pa.string(), "77", "row 1: E?.*has no value '77'"),
        ("e", pa.int32(), 2, "row 1: .*has no value 2"),
    ],
)
def test_values_that_do_not_fit_are_errors_of_their_rows(name: str, of: pa.DataType, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        writing().encode(pa.array([None, {name: value}], pa.struct([(name, of)])))


def test_text_that_is_not_utf8_is_an_error_of_its_row() -> None:
    texts = pa.array([b"good", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(ValueError, match="row 1: a text is not UTF-8"):
        writing().encode(pa.StructArray.from_arrays([texts], ["s"]))


def test_the_same_map_is_the_same_bytes() -> None:
    of = pa.struct([("m", pa.map_(pa.string(), pa.int32()))])
    pairs = [(f"k{number}", number) for number in range(20)]
    one, other = writing().encode(pa.array([{"m": pairs}, {"m": pairs[::-1]}], of)).to_pylist()
    assert one == other


def test_fields_are_found_whatever_their_case() -> None:
    made = writing().encode(pa.array([{"A": 1, "S": "x"}], pa.struct([("A", pa.int32()), ("S", pa.string())])))
    assert made.to_pylist() == [b"\x08\x01\x4a\x01x"]
    for names in (["A", "a"], ["f", "F"]):
        with pytest.raises(ValueError, match="two columns are"):
            writing().fits(pa.struct([(name, pa.int32() if name in "aA" else pa.float32()) for name in names]))
    with pytest.raises(ValueError, match=r"there is no column for M\.r, which the schema requires"):
        writing('syntax = "proto2"; message M { optional int32 a = 1; required int32 r = 2; }').fits(
            pa.struct([("a", pa.int32())])
        )


def test_a_schema_is_not_made_from_what_it_cannot_say() -> None:
    for of, why in ((NTZ, "at: Protobuf has no type for TIMESTAMP_NTZ; cast it"), (pa.date32(), "no type for DATE")):
        with pytest.raises(ValueError, match=why):
            derive_protobuf(pa.struct([("at", of)]), "M")


def test_a_slice_with_a_column_of_nulls_is_written_as_the_whole() -> None:
    """Defect: pyarrow's cast made such a slice unreadable."""
    source = SchemaSource('syntax = "proto3"; message M { int32 a = 1; int32 b = 2; }', SchemaType.PROTOBUF)
    made = encoder(source)
    rows = pa.StructArray.from_arrays([pa.nulls(3), pa.array([1, 2, 3], pa.int32())], ["a", "b"])
    assert made.encode(rows[1:]).to_pylist() == made.encode(rows).to_pylist()[1:]
