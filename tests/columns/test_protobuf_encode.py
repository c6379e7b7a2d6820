"""Columns as Protobuf payloads: the library reads what we write, and what a schema cannot hold is an error."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.protobuf_cases import Case, files, messages

from ottla.columns.protobuf.decoder import decoder
from ottla.columns.protobuf.derive import derive_protobuf
from ottla.columns.protobuf.encoder import encoder, message_indexes
from ottla.schemas.schema import SchemaType, Source


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


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (pa.struct([("b", pa.int32())]), "no field b"),
        (pa.struct([("c", pa.string())]), "repeated field there"),
    ],
)
def test_columns_that_do_not_fit_are_refused_at_once(of: pa.DataType, why: str) -> None:
    schema = Source('syntax = "proto3"; message M { int32 a = 1; repeated int32 c = 2; }', SchemaType.PROTOBUF)
    with pytest.raises(ValueError, match=why):
        encoder(schema).fits(of)
    with pytest.raises(ValueError, match="row 0"):
        encoder(schema).encode(pa.array([{"a": 2**40}], pa.struct([("a", pa.int64())])))
