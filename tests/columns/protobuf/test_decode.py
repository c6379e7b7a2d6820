"""Protobuf payloads as columns: what the library wrote comes out; what nobody wrote harms nobody."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.protobuf.cases import Case, files, messages, shown

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.protobuf.decoder import decoder
from ottla.schemas.schema import SchemaSource, SchemaType

slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck))


def unordered(value: Any) -> Any:
    """Maps have no order."""
    if isinstance(value, dict):
        return {key: unordered(each) for key, each in value.items()}
    if isinstance(value, list):
        items = [unordered(each) for each in value]
        return sorted(items, key=repr) if items and isinstance(items[0], tuple) else items
    return value


@slow_data
@given(st.data(), files())
def test_columns_hold_what_the_library_wrote(data: st.DataObject, case: Case) -> None:
    made = [messages(data.draw, case.message) for _ in range(3)]
    values = [None, *(b"123456" + each.SerializeToString() for each in made)]
    decoded = decoder(case.source).decode(pa.array(values, pa.binary()), 6)
    decoded.columns.validate(full=True)
    assert decoded.reasons == {}
    assert unordered(decoded.columns.to_pylist()) == unordered([None, *map(shown, made)])


@slow_data
@given(st.data(), files())
def test_parts_in_any_order_are_merged_as_the_library_does(data: st.DataObject, case: Case) -> None:
    parts = [messages(data.draw, case.message).SerializeToString() for _ in range(3)]
    whole = GetMessageClass(case.message)()
    whole.ParseFromString(b"".join(parts))
    decoded = decoder(case.source).decode(pa.array([b"".join(parts), b""], pa.binary()))
    decoded.columns.validate(full=True)
    assert decoded.reasons == {}
    assert unordered(decoded.columns.to_pylist()[0]) == unordered(shown(whole))


def source(text: str) -> SchemaSource:
    return SchemaSource(text, SchemaType.PROTOBUF)


def test_types_and_what_is_absent() -> None:
    text = """syntax = "proto3"; package p; import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    enum E { ZERO = 0; ONE = 1; }
    message M { int32 a = 1; optional string b = 2; repeated uint32 c = 3; map<string, int64> d = 4; N e = 5; E f = 6;
      google.protobuf.Timestamp at = 7; google.protobuf.StringValue g = 8; oneof o { bool h = 9; bytes i = 10; }
      uint64 j = 11; Empty k = 12; }
    message N { double x = 1; } message Empty {}"""
    decoded = decoder(source(text)).decode(pa.array([b""], pa.binary()))
    assert decoded.columns.type == pa.struct(
        [
            ("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.field("element", pa.int64(), nullable=False))),
            ("d", pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))),
            ("e", pa.struct([("x", pa.float64())])), ("f", pa.string()), ("at", pa.timestamp("us", "UTC")),
            ("g", pa.string()), ("h", pa.bool_()), ("i", pa.binary()), ("j", pa.decimal128(20, 0)),
        ]
    )  # fmt: skip
    nulls = dict.fromkeys(["b", "e", "at", "g", "h", "i"])
    assert decoded.columns.to_pylist() == [{"a": 0, "c": [], "d": [], "f": "ZERO", "j": 0, **nulls}]


def test_defaults_and_required_fields_of_proto2() -> None:
    text = """syntax = "proto2"; message M { optional int32 a = 1 [default = -7]; optional string b = 2 [default = "x"];
      required int32 c = 3; optional sint64 d = 4 [default = -9]; optional bool e = 5 [default = true];
      optional float f = 6 [default = 0.5]; optional int32 g = 7; }"""
    decoded = decoder(source(text)).decode(pa.array([b"\x18\x05", b""], pa.binary()))
    expected = {"a": -7, "b": "x", "c": 5, "d": -9, "e": True, "f": 0.5, "g": None}
    assert decoded.columns.to_pylist() == [expected, None]
    assert decoded.reasons == {1: "a required field is missing"}


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"\x08", "the value ends too early"),
        (b"\x08" + b"\xff" * 11, "a number has too many bytes"),
        (b"\x12\x02\xff\xff", "a string is not UTF-8"),
        (b"\x12\x7f", "the value ends too early"),
        (b"\x00\x01", "there is no such field or wire type"),
        (b"\x0f", "there is no such field or wire type"),
        (b"\x1a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "the time does not fit its type"),
    ],
)
def test_reasons_say_what(payload: bytes, why: str) -> None:
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
    message M { int32 a = 1; string b = 2; google.protobuf.Timestamp at = 3; }"""
    assert decoder(source(text)).decode(pa.array([payload], pa.binary())).reasons == {0: why}


V1 = 'syntax = "proto3"; package p; message Other {} message M { int32 a = 1; string gone = 2; }'
V2 = 'syntax = "proto3"; package p; message M { int64 a = 1; double added = 3; }'


def test_another_version_is_read_by_numbers() -> None:
    payload = b"\x08\x05\x12\x01x"
    decoded = decoder(source(V1), source(V2), indexes=(1,)).decode(pa.array([payload], pa.binary()))
    assert decoded.columns.to_pylist() == [{"a": 5, "added": 0.0}]
    with pytest.raises(UnsupportedSchema, match=r"messages p\.Other, not p\.M"):
        decoder(source(V1), source(V2), indexes=(0,))
    with pytest.raises(UnsupportedSchema, match="no message with the indexes"):
        decoder(source(V1), source(V2), indexes=(7,))


def test_recursive_messages_are_refused() -> None:
    for text in (
        "message M { repeated M below = 1; }",
        "message M { map<string, N> below = 1; } message N { oneof o { M up = 1; int32 a = 2; } }",
        "message M { M below = 1; }",
    ):
        with pytest.raises(
            UnsupportedSchema, match=r"M is inside itself \(M > .*M\): recursive messages have no columns"
        ):
            decoder(source(f'syntax = "proto3"; {text}'))


def test_more_messages_in_each_other_than_the_library_reads_are_refused() -> None:
    chain = "".join(f"message M{each} {{ M{each + 1} a = 1; M{each + 1} b = 2; }}" for each in range(300))
    for first in (0, 199):
        with pytest.raises(UnsupportedSchema, match="more than 100 messages in each other"):
            decoder(source(f'syntax = "proto3"; message M {{ M{first} a = 1; }} {chain} message M300 {{}}'))
    # Twice as many ways with every message, and no value behind any of them.
    assert (
        decoder(source(f'syntax = "proto3"; message M {{ M201 a = 1; }} {chain} message M300 {{}}')).type.num_fields
        == 0
    )


def test_times_before_1970_are_cut_downwards() -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp at = 1; }'
    )
    payload = bytes.fromhex("0a0e08ffffffffffffffffff0110e707")  # -1 s and 999 ns
    (row,) = decoder(source(text)).decode(pa.array([payload], pa.binary())).columns.to_pylist()
    assert row["at"] == dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)
