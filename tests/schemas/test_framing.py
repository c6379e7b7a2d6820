"""The wire format: round trips, what is refused and in which words, and the same bytes as confluent-kafka writes."""

from __future__ import annotations

import hashlib
import io
import uuid

import pytest
from confluent_kafka.schema_registry import (
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.limits import INT32_MAX
from ottla.schemas.framing import BadFrame, find_mark, frame, guid_of, schema_mark, unframe
from ottla.schemas.schema import Reference

IDS = st.integers(0, INT32_MAX)
PATHS = st.lists(st.integers(0, INT32_MAX), min_size=1, max_size=32).map(tuple)


@given(schema_id=IDS, payload=st.binary(max_size=20))
def test_a_frame_is_read_back(schema_id: int, payload: bytes) -> None:
    value = frame(schema_id, payload)
    framed = unframe(memoryview(value))
    assert (framed.schema_id, framed.guid, framed.message_indexes) == (schema_id, None, None)
    assert value[framed.payload_begin :] == payload


@given(schema=st.one_of(IDS, st.uuids()), path=PATHS, payload=st.binary(max_size=20))
def test_indexes_are_read_back_and_are_those_of_confluent(
    schema: int | uuid.UUID, path: tuple[int, ...], payload: bytes
) -> None:
    value = schema_mark(schema, path) + payload
    framed = unframe(value, with_indexes=True)
    assert (framed.guid or framed.schema_id, framed.message_indexes) == (schema, path)
    assert value[framed.payload_begin :] == payload

    theirs = SchemaId("PROTOBUF")
    assert theirs.from_bytes(io.BytesIO(value)).read() == payload
    assert (theirs.guid or theirs.id, tuple(theirs.message_indexes)) == (schema, path)
    assert (theirs.guid_to_bytes() if theirs.guid else theirs.id_to_bytes()) + payload == value


def test_the_first_message_is_one_byte() -> None:
    assert frame(7, b"x", (0,)) == b"\x00\x00\x00\x00\x07\x00x"
    # The long spelling of the same path is understood too.
    assert unframe(b"\x00\x00\x00\x00\x07\x02\x00x", with_indexes=True).message_indexes == (0,)


def test_confluents_serializers_and_ours_agree() -> None:
    guid = uuid.UUID("89791762-2336-186f-9674-99b90a8e2765")
    theirs = SchemaId("AVRO", 11, str(guid))
    context = SerializationContext("t", MessageField.VALUE, headers=[])
    assert prefix_schema_id_serializer(b"pay", context, theirs) == frame(11, b"pay")
    assert header_schema_id_serializer(b"pay", context, theirs) == b"pay"
    headers = [(name, bytes(value)) for name, value in context.headers]
    mark = find_mark(headers, of_key=False)
    assert mark == schema_mark(guid)
    assert unframe(mark).guid == guid
    assert find_mark(headers, of_key=True) is None

    ours = SerializationContext("t", MessageField.KEY, headers=[("__key_schema_id", schema_mark(guid))])
    read = SchemaId("AVRO")
    assert dual_schema_id_deserializer(b"pay", ours, read).read() == b"pay"
    assert read.guid == guid


@pytest.mark.parametrize(
    ("value", "with_indexes", "words"),
    [
        (b"", False, "empty"),
        (b"{", False, "byte 123, not with the magic byte"),
        (b"\x00\x00\x00\x01", False, "ends within the schema id: 4 bytes"),
        (b"\x00\xff\xff\xff\xff", False, "negative: -1"),
        (b"\x01" + bytes(15), False, "ends within the schema's GUID"),
        (b"\x00\x00\x00\x00\x01", True, "ends within the message indexes"),
        (b"\x00\x00\x00\x00\x01\x04\x02", True, "ends within the message indexes"),
        (b"\x00\x00\x00\x00\x01\x01", True, "a path of -1 message indexes"),
        (b"\x00\x00\x00\x00\x01\xfe\x07", True, "a path of 511 message indexes"),
        (b"\x00\x00\x00\x00\x01\x02\x01", True, "index is negative: -1"),
        (b"\x00\x00\x00\x00\x01" + b"\xff" * 6, True, "more than 32 bits"),
        (b"\x00\x00\x00\x00\x01" + b"\xff\xff\xff\xff\x7f", True, "more than 32 bits"),
    ],
)
def test_what_is_no_frame_is_refused_with_the_reason(value: bytes, with_indexes: bool, words: str) -> None:
    with pytest.raises(BadFrame, match=words):
        unframe(value, with_indexes=with_indexes)


@given(value=st.binary(max_size=40), with_indexes=st.booleans())
def test_any_bytes_are_a_frame_or_refused(value: bytes, with_indexes: bool) -> None:
    try:
        framed = unframe(value, with_indexes=with_indexes)
    except BadFrame:
        return
    assert framed.payload_begin <= len(value)


@pytest.mark.parametrize(("schema", "path"), [(-1, None), (2**31, None), (1, ()), (1, (-1,)), (1, (0,) * 33)])
def test_what_no_frame_can_say_is_not_written(schema: int, path: tuple[int, ...] | None) -> None:
    with pytest.raises(ValueError, match="is no"):
        schema_mark(schema, path)


def test_guid_is_an_md5_of_text_references_metadata_and_rules() -> None:
    text = '{"type":"string"}'
    assert guid_of(text) == _md5(text)
    reference = Reference("a.proto", "a", 3)
    assert guid_of(text, [reference]) == _md5(text, "a.protoa", b"\x00\x00\x00\x03")
    metadata = {"properties": {"b": "2", "a": "1"}, "tags": {"x": ["q", "p"]}, "sensitive": ["s"]}
    assert guid_of(text, metadata=metadata) == _md5(text, b"\x01", "xpq", "a1b2", "s")
    # No metadata and empty metadata differ.
    assert guid_of(text, metadata={}) == _md5(text, b"\x01")
    rule = {
        **{"name": "n", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"},
        **{"tags": ["PII"], "params": {"k": "v"}, "onFailure": "DLQ", "disabled": True},
    }
    expected = _md5(text, b"\x01", "nCONDITIONWRITECELPIIkvtrueDLQ", b"\x01")
    assert guid_of(text, rule_set={"domainRules": [rule]}) == expected
    assert guid_of(text, rule_set={"domainRules": [{**rule, "disabled": False}]}) != expected


def _md5(*parts: str | bytes) -> uuid.UUID:
    joined = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return uuid.UUID(bytes=hashlib.md5(joined, usedforsecurity=False).digest())
