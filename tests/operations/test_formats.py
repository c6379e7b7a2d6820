"""Sizes, rates and numbers as people write them."""

from __future__ import annotations

import pytest

from ottla.model.limits import INT32_MAX, INT64_MAX
from ottla.operations.dead_letters import LetterPlace, places_of
from ottla.operations.errors import WrongUsage
from ottla.operations.formats import parse_index, parse_offset, parse_rate, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("50MiB", 50 << 20), (" 1.5 GB ", 1_500_000_000), ("2k", 2000), ("1B", 1), ("4TiB", 4 << 40)],
)
def test_a_size_is_a_rate_without_time(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert parse_rate(text) == parse_rate(f"{text.strip()}/s") == size


@pytest.mark.parametrize("text", ["", "fast", "50MB/s", "-1", "1e3", "1 000", "/s"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(WrongUsage, match="is no size"):
        parse_size(text)


@pytest.mark.parametrize("parse", [parse_size, parse_rate])
def test_nothing_is_too_little(parse: type) -> None:
    with pytest.raises(WrongUsage, match="above 0"):
        parse("0.5")


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "\u0663", "9" * 5_000])
def test_what_is_no_number(text: str) -> None:
    assert parse_index(text) is None and parse_offset(text) is None


def test_the_largest_numbers() -> None:
    assert (parse_index(str(INT32_MAX)), parse_index(str(INT32_MAX + 1))) == (INT32_MAX, None)
    assert (parse_offset(str(INT64_MAX)), parse_offset(str(INT64_MAX + 1))) == (INT64_MAX, None)


def test_places_of_letters() -> None:
    places = places_of(["0:17", "03:4"])
    assert places == (LetterPlace(0, 17), LetterPlace(3, 4)) and list(map(str, places)) == ["0:17", "3:4"]
    for text in ("", "0", ":", "0:", ":1", "0:-1", "0:1:2", "a:1", f"0:{9**50}"):
        with pytest.raises(ValueError, match="is not PARTITION:OFFSET"):
            places_of([text])
