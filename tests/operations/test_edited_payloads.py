"""What is edited and not changed comes out as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.operations.edited_payloads import EditFormat, editable, edited, headers_of, headers_text

_PAYLOADS = st.none() | st.binary(max_size=50) | st.text(max_size=50).map(lambda text: text.encode("utf-8", "replace"))


def typed(text: str) -> str:
    """The text as a browser sends that of a text area."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


@given(_PAYLOADS)
def test_payloads_survive_a_browser(data: bytes | None) -> None:
    form, text = editable(data)
    assert edited(form, typed(text)) == data


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), _PAYLOADS), max_size=5))
def test_headers_survive_a_browser(headers: list[tuple[str, bytes | None]]) -> None:
    assert headers_of(typed(headers_text(tuple(headers)))) == headers


@pytest.mark.parametrize(
    ("data", "form"),
    [(None, "null"), (b"", "text"), (b"a\n\tb", "text"), (b"a\r\nb", "hex"), (b"\xff", "hex"), (b"\x00", "hex")],
)
def test_the_format_loses_nothing(data: bytes | None, form: str) -> None:
    assert editable(data)[0] == form


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '["a"]', '[["a"]]', '[["a", 1]]', '[["a", {"hex": "0"}]]', "[[1, null]]"]
)
def test_what_is_no_list_of_headers(text: str) -> None:
    with pytest.raises(ValueError, match=r"headers are a list|hexadecimal"):
        headers_of(text)


@pytest.mark.parametrize("text", ["0", "zz", "0x00"])
def test_what_are_no_digits(text: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal digits"):
        edited(EditFormat.hex, text)
