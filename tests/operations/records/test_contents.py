"""What bytes say, in each format and by guessing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.model import limits
from ottla.operations.records.contents import ContentFormat, RecordReader, hex_dump, read_content
from ottla.schemas.schema import SchemaSource, SchemaType
from ottla.testing.broker import EmbeddedBroker


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (None, "null", "null"),
        (b"", "text", ""),
        (b"hello", "text", "hello"),
        ("Änne".encode(), "text", "Änne"),
        (b'{"a": [1, 2]}', "json", '{"a":[1,2]}'),
        (b'{"a": ', "text", '{"a": '),
        (b"{" * 100_000, "text", "{" * 100_000),
        (b"[" * 100_000, "text", "[" * 100_000),
        (b"\x82\xa1a\x01\xa1b\xc3", "msgpack", '{"a":1,"b":true}'),
        (b"\xcc\xff", "hex", "ccff"),  # a number alone may be anything
        (b"\0\1\2", "hex", "000102"),
        (b"\xff\xfe", "hex", "fffe"),
    ],
)
def test_guessed(data: bytes | None, kind: str, text: str) -> None:
    read = read_content(data, ContentFormat.auto)
    assert (read.format, read.text) == (kind, text)


@pytest.mark.parametrize(
    ("data", "wanted", "kind", "text", "note"),
    [
        (b"41", ContentFormat.json, "json", "41", ""),
        (b"no", ContentFormat.json, "text", "no", "it is not JSON"),
        (b"\x05", ContentFormat.msgpack, "msgpack", "5", ""),
        (b"\xc1", ContentFormat.msgpack, "hex", "c1", "not MessagePack"),
        (b"\xff", ContentFormat.text, "text", "\\xff", ""),
        (b"a", ContentFormat.hex, "hex", "61", ""),
        (b"\xff\xff\xff\xff", ContentFormat.number, "number", "-1", ""),
        (b"\0\0\0\0\0\0\1\0", ContentFormat.number, "number", "256", ""),
        (b"abc", ContentFormat.number, "text", "abc", "4 or 8 bytes"),
    ],
)
def test_chosen(data: bytes, wanted: ContentFormat, kind: str, text: str, note: str) -> None:
    read = read_content(data, wanted)
    assert (read.format, read.text) == (kind, text)
    assert note in read.note


@pytest.mark.parametrize("data", [b'["' + b"x" * limits.CONSOLE_DECODED_BYTES_MAX + b'"]', "ä".encode() * 600_000])
def test_only_the_beginning_of_large_contents_is_read(data: bytes) -> None:
    read = read_content(data, ContentFormat.auto)
    assert read.format == "text"
    assert len(read.text) <= limits.CONSOLE_VALUE_BYTES_MAX
    assert f"{len(data):,}" in read.note


@given(st.binary(max_size=200), st.sampled_from(ContentFormat))
def test_any_bytes_can_be_read(data: bytes, wanted: ContentFormat) -> None:
    read = read_content(data, wanted)
    json.dumps(read.value)
    assert hex_dump(data).count("\n") == max(-(-len(data) // 16) - 1, 0)


def test_a_registry_that_is_away_is_asked_once() -> None:
    options = RegistryOptions(("http://127.0.0.1:1",), attempts=1)
    reader = RecordReader(SchemaRegistry(options))
    notes = [reader.value(_record(bytes((0, 0, 0, 0, number)) + b"abc")).note for number in range(5)]
    assert "does not answer" in notes[0]
    assert set(notes[1:]) == {"the registry was not asked for this schema"}


def test_each_value_is_told_why_it_cannot_be_read(tmp_path: Path) -> None:
    """Also after many of them, and without a request for a schema that the registry does not know."""
    with EmbeddedBroker(tmp_path) as broker:
        registry = SchemaRegistry(RegistryOptions.of(broker.registry.url))
        known = registry.register("t-value", SchemaSource('"long"', SchemaType.AVRO))
        reader = RecordReader(registry)
        cut_off = _record(b"\0" + known.to_bytes(4) + b"\xff")
        notes = [reader.value(cut_off).note for _ in range(30)]
        assert set(notes) == {"the payload ends too early"}
        unknown = [reader.value(_record(b"\0" + (999).to_bytes(4) + b"x")).note for _ in range(2)]
        assert "40403" in unknown[0] and unknown[1] == "the registry was not asked for this schema"
        assert reader.value(_record(b"\0" + known.to_bytes(4) + b"\x02")).value == 1


def test_without_a_registry_the_frame_is_told() -> None:
    read = RecordReader(None).value(_record(b"\0\0\0\0\1payload"))
    assert (read.format, read.note) == ("hex", "no schema registry is known")


def _record(value: bytes) -> ConsumedRecord:
    return ConsumedRecord("t", 0, 0, 0, None, value, (), 0)
