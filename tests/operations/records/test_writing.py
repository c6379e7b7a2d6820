"""Records that were typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.operations.errors import CommandError
from ottla.operations.records.writing import (
    TypedFormat,
    content_bytes,
    header_of,
    headers_of,
    headers_text,
    typed_again,
)


@pytest.mark.parametrize(
    ("text", "typed", "data"),
    [
        ("", TypedFormat.null, None),
        ("ä b", TypedFormat.text, "ä b".encode()),
        ("", TypedFormat.text, b""),
        ('{ "a" : 1 }', TypedFormat.json, b'{"a":1}'),
        ("00 ff", TypedFormat.hex, b"\0\xff"),
    ],
)
def test_contents(text: str, typed: TypedFormat, data: bytes | None) -> None:
    assert content_bytes("value", text, typed) == data


@pytest.mark.parametrize(
    ("text", "typed", "why"),
    [
        ("{", TypedFormat.json, "not JSON"),
        ("[" * 100_000, TypedFormat.json, "not JSON"),
        ("0g", TypedFormat.hex, "not hex"),
        ("\ud800", TypedFormat.text, "half a character"),
        ('"\\ud800"', TypedFormat.json, "half a character"),
        ("1", TypedFormat.registry, "no schema registry"),
    ],
)
def test_what_cannot_be_sent(text: str, typed: TypedFormat, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        content_bytes("value", text, typed)


def test_headers() -> None:
    headers = [
        ("trace", b"7"),
        ("flag", None),
        ("raw", b"\0\xff"),
        ("like bytes", b"hex:00"),
        ("like null", b"null:"),
        ("null as text", b"null"),
        ("empty", b""),
        ("equation", b"a=b"),
        ("", b"no name"),
        ('"', b"a quote"),
        ("a=b", b"an equals sign"),
        ("a: b", b"a colon"),
        (" a\0\u202e\n", b"\xe2\x80\xae"),
        ("lines", b"a\nb"),
        ("spaces", b" a "),
    ]
    assert headers_of(headers_text(headers)) == headers


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("name=value", ("name", b"value")),
        (" name = value ", ("name", b" value ")),
        ("name=hex:00 ff", ("name", b"\0\xff")),
        ("name=null:", ("name", None)),
        ("name=", ("name", b"")),
        (' "a=b" =c', ("a=b", b"c")),
        ("a: b=c", ("a: b", b"c")),
    ],
)
def test_a_header(text: str, header: tuple[str, bytes | None]) -> None:
    assert header_of(text) == header


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name=hex:zz", "not hex"),
        ('"name', "no closing quote"),
        ('"name" value', "an equals sign follows"),
        ('"name"value=x', "an equals sign follows"),
        ("name: value", "NAME=VALUE"),
        ("name", "NAME=VALUE"),
        ("=value", "NAME=VALUE"),
        ('"\\ud800"=x', "half a character"),
        ("name=\ud800", "half a character"),
        ("\ud800=x", "half a character"),
    ],
)
def test_what_is_no_header(text: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        header_of(text)


@given(st.lists(st.tuples(st.text(max_size=9), st.none() | st.binary(max_size=9)), max_size=3))
def test_any_headers_can_be_typed_again(headers: list[tuple[str, bytes | None]]) -> None:
    text = headers_text(headers)
    assert all(each.isprintable() or each == "\n" for each in text)
    assert headers_of(text) == headers


@given(
    st.one_of(st.none(), st.binary(max_size=50), st.text(max_size=50).map(lambda text: text.encode("utf-8", "replace")))
)
def test_bytes_can_be_typed_again(data: bytes | None) -> None:
    kind, text = typed_again(data)
    sent = text.replace("\n", "\r\n").replace("\r\n", "\n")  # as a browser sends it, and as it is taken
    assert content_bytes("value", sent, kind) == data
