"""Java's properties text."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.properties import PropertiesError, parse_entries

# Java's strings are UTF-16, so a lone surrogate can be a value too; a text file cannot hold one, and neither do we.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def values_of(text: str) -> dict[str, str]:
    return {entry.name: entry.value for entry in parse_entries(text)}


def escape(text: str, *, is_key: bool) -> str:
    """As Java writes it."""
    out: list[str] = []
    for position, char in enumerate(text):
        if char == " " and (is_key or position == 0):
            out.append("\\ ")
        elif char in "\\=:#!":
            out.append("\\" + char)
        elif char in "\t\n\r\f":
            out.append("\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[char])
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2)]
    return "".join(out)


@given(st.dictionaries(TEXT, TEXT, max_size=5))
def test_round_trip(values: dict[str, str]) -> None:
    lines = (f"{escape(key, is_key=True)}={escape(value, is_key=False)}\n" for key, value in values.items())
    assert values_of("#made by a test\n" + "".join(lines)) == values


@given(TEXT)
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PropertiesError):
        values_of(text)


def test_the_grammar_of_java() -> None:
    text = "\n".join(
        [
            "# a comment",
            "! another \\",
            "a=1",
            "  b : 2  ",
            "c 3",
            "d",
            "e = x\\",
            "    y\\",
            "",
            "f\\ g=h\\=i\\u0041\\t\\q",
            "k==",
            "a=last",
            "path=C:\\\\dir\\\\",
        ]
    )
    assert values_of(text) == {
        "a": "last",
        "b": "2  ",
        "c": "3",
        "d": "",
        "e": "xy",
        "f g": "h=iA\tq",
        "k": "=",
        "path": "C:\\dir\\",
    }
    entries = list(parse_entries(text))
    assert [entry.line for entry in entries] == [3, 4, 5, 6, 7, 10, 11, 12, 13]
    assert [entry.separator for entry in entries] == ["=", ":", "", "", "=", "=", "=", "=", "="]


def test_line_ends_of_all_systems() -> None:
    assert values_of("a=1\r\nb=2\rc=3\\\r\n 4") == {"a": "1", "b": "2", "c": "34"}


def test_a_file_may_end_in_a_backslash() -> None:
    assert values_of("a=1\\") == {"a": "1"}


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(PropertiesError, match="line 2: "):
        values_of("a=1\nb=\\u00g0")


def test_characters_beyond_16_bits() -> None:
    assert values_of("a=\\uD83D\\uDE00\n") == {"a": "\U0001f600"}
