"""Places in a topic as they stand in an address: an offset for each partition, `0.120-1.98`."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.console.refusals import WrongInput
from ottla.model import limits
from ottla.operations.records.reading import Place

_OFFSET_DIGITS = 19


def place_text(place: Mapping[int, int]) -> str:
    return "-".join(f"{index}.{offset}" for index, offset in sorted(place.items()))


def place_of(text: str) -> Place:
    """Read a place. Raises WrongInput."""
    found: Place = {}
    for part in text.split("-", limits.CONSOLE_ROWS_MAX):
        index, _, offset = part.partition(".")
        if not all(each.isascii() and each.isdecimal() and len(each) <= _OFFSET_DIGITS for each in (index, offset)):
            raise WrongInput("the address names no place in the topic", "begin at the newest records again")
        found[int(index)] = min(int(offset), limits.INT64_MAX)
    return found
