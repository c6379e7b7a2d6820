"""The reader and the broker's contracts agree about Protobuf: a value that one can read the other can, too."""

from __future__ import annotations

import base64
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.columns.protobuf.fuzz import case, varint

from ottla.client.registry import NOT_FOUND, RegistryError
from ottla.columns.protobuf.decoder import ProtobufDecoder
from ottla.log.config import ContractTerms
from ottla.records.record import Record
from ottla.schemas.framing import schema_mark
from ottla.schemas.readable import reader_of
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.server.schemas.record_check import RecordCheck
from ottla.spark.typed.key_or_value import Side

GUID = UUID(int=7)
TOO_LARGE = "the time does not fit its type"


def agree(contract: str | None, reader: str | None) -> bool:
    """A time that no column holds is a good Timestamp all the same."""
    return (contract is None) == (reader is None) or (contract is None and reader == TOO_LARGE)


@pytest.mark.parametrize("seed", range(200_000, 200_020))
def test_payloads(seed: int) -> None:
    made = case(seed)
    source = SchemaSource(base64.b64encode(made.file.SerializeToString()).decode(), SchemaType.PROTOBUF)
    indexes = (next(place for place, each in enumerate(made.file.message_type) if each.name == "M"),)
    read = reader_of(source)
    reasons = ProtobufDecoder(made.message).decode(pa.array(made.payloads, pa.binary())).reasons
    for row, payload in enumerate(made.payloads):
        why = read(payload, indexes)
        assert agree(why, reasons.get(row)), (payload.hex(), why, reasons.get(row))


TEXT = """syntax = "proto2"; package p; message First { optional int32 a = 1; message Inner { optional string s = 1;
  message Most { required int32 r = 1; } } } message Second { map<string, string> m = 1; repeated string t = 2; }"""
SOURCE = SchemaSource(TEXT, SchemaType.PROTOBUF)


class Registered:
    """What the broker and the reader know: schema 5, which has a GUID, too."""

    type = SchemaType.PROTOBUF
    subjects = frozenset({"t-value"})

    def __init__(self) -> None:
        self.why_unreadable = reader_of(SOURCE)

    def find(self, identity: int | UUID) -> Any:
        return self if identity in (5, GUID) else None

    def by_id_or_guid(self, schema: int | UUID) -> SchemaSource:
        if self.find(schema) is None:
            raise RegistryError(NOT_FOUND, 40403, "Schema not found")
        return SOURCE


@pytest.mark.parametrize(
    ("message", "indexes", "payloads"),
    [
        ("p.First", (0,), [b"", b"\x08\x01", b"\x08"]),
        ("p.First.Inner", (0, 0), [b"", b"\x0a\x01a", b"\x0a\x01\xff"]),
        ("p.First.Inner.Most", (0, 0, 0), [b"", b"\x08\x01"]),
        ("p.Second", (1,), [b"", b"\x0a\x04\x0a\x00\x12\x00", b"\x0a\x03\x0a\x01\xff", b"\x12\x01a\x12\x01\xff"]),
    ],
)
def test_frames(message: str, indexes: tuple[int, ...], payloads: list[bytes]) -> None:
    rng = Random(len(message))
    values: list[bytes | None] = [None, b""]
    spelt = b"".join(varint(rng, number << 1, False) for number in (len(indexes), *indexes))
    long = b"".join(bytes([number << 1 | 128, 128, 128, 128, 0]) for number in (len(indexes), *indexes))
    for schema in (5, 6, GUID, UUID(int=8)):
        mark = schema_mark(schema)
        for path in (
            spelt,
            schema_mark(schema, indexes)[len(mark) :],
            long,
            b"\x01",
            b"\x02\x7f",
            b"\xff" * 5,
            b"\x80" * 200,
        ):
            values += [mark + path + payload for payload in payloads]
    for value in list(values)[2:]:
        changed = bytearray(value or b"")
        changed[rng.randrange(len(changed))] = rng.choice([0, 1, 2, 128, 255])
        values += [bytes(changed), bytes(changed[: rng.randrange(len(changed))])]
    known: Any = Registered()
    records = [Record(at, 0, None, value, ()) for at, value in enumerate(values)]
    cache: Any = SimpleNamespace(known=known)
    terms = ContractTerms(full=True, of="value", own_subjects=True, action="reject", dead_letters="")
    faults = RecordCheck(cache, "t", terms).faults(records)
    decoded = Side("value", SOURCE, known, message).decode(pa.array(values, pa.binary()), None)
    for row, value in enumerate(values):
        reason = decoded.reasons.get(row)
        if reason is not None and "these are messages" in reason:
            continue  # good or not, they are not what the reader was asked for
        assert agree(faults.get(row), reason), (value, faults.get(row), reason)
